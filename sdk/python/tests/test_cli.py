"""The command line as its users meet it: what it prints, where, and how it exits."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from typing import Tuple

from .support import Signer, anchor, bundle, dump, ledger, lines

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIGNER = Signer()
RECORDS = ledger(9, seed=31)


class CommandLine(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.ledger = self.write("ledger.jsonl", lines(RECORDS))
        self.pub = self.write("svc.pub", SIGNER.pem.encode())

    def write(self, name: str, data: bytes) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def run_cli(self, *arguments: str, data: bytes = b"") -> Tuple[int, str, str]:
        command = [sys.executable, "-m", "reversi_sdk", *arguments]
        done = subprocess.run(command, cwd=ROOT, input=data, capture_output=True)
        self.assertNotIn("Traceback", done.stderr.decode())
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_verify(self) -> None:
        good = f"ok: 9 records, head {RECORDS[-1]['hash']}\n"
        self.assertEqual(self.run_cli("verify", self.ledger), (0, good, ""))
        self.assertEqual(self.run_cli("verify", "-", data=lines(RECORDS)), (0, good, ""))
        bad = self.write("bad.jsonl", lines([*RECORDS[:4], {**RECORDS[4], "actor": "mallory"}, *RECORDS[5:]]))
        code, out, _ = self.run_cli("verify", bad)
        said = "INVALID: record 4 (line 5): its content does not match its hash: it was changed\n"
        self.assertEqual((code, out), (1, said))
        code, out, _ = self.run_cli("verify", self.ledger, bad)
        self.assertEqual(code, 1)
        self.assertEqual(out.splitlines()[0], f"{self.ledger}: {good.strip()}")
        self.assertTrue(out.splitlines()[1].startswith(f"{bad}: INVALID"))

    def test_what_is_no_ledger(self) -> None:
        fifo = os.path.join(self.folder, "pipe")
        os.mkfifo(fifo)
        cases = [
            (os.path.join(self.folder, "none"), "does not exist"),
            (self.folder, "is a folder"),
            (fifo, "not a regular file"),
            ("/dev/zero", "not a regular file"),
            (self.write("empty", b""), "is empty"),
        ]
        for path, saying in cases:
            for command in ("verify", "verify-bundle"):
                code, out, err = self.run_cli(command, path)
                self.assertEqual((code, out), (1, ""), path)
                self.assertIn(saying, err)
                self.assertEqual(err.count("\n"), 1)

    def test_torn(self) -> None:
        code, out, _ = self.run_cli("verify", self.write("torn", lines(RECORDS)[:-5]))
        self.assertEqual(code, 1)
        self.assertIn("torn", out)
        self.assertIn(f"8 records before it are sound, head {RECORDS[7]['hash']}", out)

    def test_verify_bundle(self) -> None:
        whole = self.write("whole.json", dump(bundle(RECORDS, SIGNER)))
        code, out, _ = self.run_cli("verify-bundle", whole, "--pub", self.pub)
        self.assertEqual(code, 0)
        self.assertIn("ok: bundle of whole ledger: 9 records", out)
        self.assertIn("a key you trust", out)
        self.assertNotIn("not checked", out)
        code, out, _ = self.run_cli("verify-bundle", whole)
        self.assertEqual(code, 0)
        self.assertIn("the key was not checked against a trusted key", out)
        other = self.write("other.pub", Signer(b"\1" * 32).pem.encode())
        code, out, _ = self.run_cli("verify-bundle", whole, "--pub", other)
        self.assertEqual(code, 1)
        self.assertTrue(out.startswith("INVALID"))
        self.assertEqual(self.run_cli("verify-bundle", whole, "--pub", other, "--pub", self.pub)[0], 0)

    def test_hostile_text_stays_text(self) -> None:
        made = {**bundle(RECORDS, SIGNER), "\x1b[2J\x07": 1}
        code, out, _ = self.run_cli("verify-bundle", self.write("evil.json", dump(made)))
        self.assertEqual(code, 1)
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\x07", out)

    def test_keys_that_are_none(self) -> None:
        whole = self.write("whole.json", dump(bundle(RECORDS, SIGNER)))
        body = SIGNER.pem.splitlines()[1]
        rsa = "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK" + "A" * 66
        cases = [
            (f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n", "private key"),
            (f"-----BEGIN PUBLIC KEY-----\n{rsa}\n-----END PUBLIC KEY-----\n", "not an Ed25519 public key"),
            (SIGNER.pem[:70], "not a PEM public key"),
            ("", "not a PEM public key"),
            ("x" * 100_000, "too large"),
            ("\u00fc", "not a PEM public key"),
        ]
        for text, saying in cases:
            code, out, err = self.run_cli("verify-bundle", whole, "--pub", self.write("k", text.encode()))
            self.assertEqual((code, out, err.count("\n")), (1, "", 1), text[:40])
            self.assertIn(saying, err)

    def test_verify_anchors(self) -> None:
        made = self.write("anchors.jsonl", lines([anchor(RECORDS[:4], SIGNER), anchor(RECORDS, SIGNER)]))
        code, out, _ = self.run_cli("verify-anchors", made, self.ledger, "--pub", self.pub)
        self.assertEqual(code, 0)
        self.assertEqual(out.splitlines()[0], "2023-11-14T22:16:40.000Z  4 records  ok")
        self.assertNotIn("not checked", out)
        code, out, _ = self.run_cli("verify-anchors", made, self.ledger)
        self.assertEqual(code, 0)
        self.assertIn("not checked: the signatures", out)
        one = self.write("one.jsonl", lines([anchor(RECORDS[:1], SIGNER)]))
        code, out, _ = self.run_cli("verify-anchors", one, self.write("first.jsonl", lines(RECORDS[:1])))
        self.assertIn("  1 record  ok\nok: 1 anchor holds for the ledger of 1 record, head ", out)
        short = self.write("short.jsonl", lines(RECORDS[:6]))
        code, out, _ = self.run_cli("verify-anchors", made, short)
        self.assertEqual(code, 1)
        self.assertIn("the ledger has 6 records but was anchored at 9: it has been truncated", out)
        self.assertIn("INVALID: 1 of 2 anchors does not hold", out)

    def test_usage(self) -> None:
        for arguments in ((), ("verify",), ("verify", "--nope", "x"), ("nope",), ("verify-anchors", "x")):
            code, out, err = self.run_cli(*arguments)
            self.assertEqual((code, out), (1, ""))
            self.assertEqual(err.count("\n"), 1)
        self.assertEqual(self.run_cli("--help")[0], 0)

    def test_a_reader_that_leaves(self) -> None:
        command = f"{sys.executable} -m reversi_sdk verify {' '.join([self.ledger] * 3000)} | head -n 1"
        done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True)
        self.assertEqual(done.stderr, b"")


if __name__ == "__main__":
    unittest.main()
