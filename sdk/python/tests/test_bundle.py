"""Bundles: good ones pass, and a change anywhere is INVALID whether or not the forger can sign."""

from __future__ import annotations

import base64
import copy
import io
import json
import unittest
from typing import Any, Dict, Optional

from reversi_sdk import jsonstream
from reversi_sdk.bundle import verify_bundle
from reversi_sdk.errors import InputError, Invalid

from .support import Signer, bundle, dump, ledger, rechain, seal, sign_bundle, tree_path, tree_root, leaf

SIGNER = Signer()
RECORDS = ledger(23, seed=11, runs=3)
# A run that holds the ledger's last record, and one that does not.
LAST_RUN = next(r["run_id"] for r in reversed(RECORDS) if "run_id" in r)
OTHER_RUN = next(r["run_id"] for r in RECORDS if r.get("run_id") not in (None, LAST_RUN))


def check(made: Any, trusted: Optional[Dict[str, Any]] = None) -> Any:
    data = made if isinstance(made, bytes) else dump(made)
    return verify_bundle(io.BytesIO(data), SIGNER.trust() if trusted is None else trusted)


class Case(unittest.TestCase):
    def refuse(self, made: Any, saying: str = "", trusted: Optional[Dict[str, Any]] = None) -> None:
        with self.assertRaises(Invalid) as caught:
            check(made, trusted)
        self.assertIn(saying, str(caught.exception))


class GoodBundles(Case):
    def test_ledgers_of_many_sizes(self) -> None:
        for size in (0, 1, 2, 3, 8, 23):
            report = check(bundle(RECORDS[:size], SIGNER))
            self.assertEqual((report.kind, report.count, report.trusted), ("ledger", size, True))

    def test_runs(self) -> None:
        for run_id in sorted({r["run_id"] for r in RECORDS if "run_id" in r}):
            made = bundle(RECORDS, SIGNER, run_id)
            report = check(made)
            self.assertEqual((report.run_id, report.count), (run_id, made["count"]))
            self.assertEqual(report.head_tied, made["records"][-1]["seq"] == 22)

    def test_a_run_of_which_nothing_was_recorded(self) -> None:
        self.assertEqual(check(bundle(RECORDS, SIGNER, "run_quiet")).count, 0)

    def test_key_that_came_along(self) -> None:
        self.assertFalse(check(bundle(RECORDS, SIGNER), {}).trusted)

    def test_layout_and_order_of_members_do_not_matter(self) -> None:
        made = bundle(RECORDS, SIGNER, OTHER_RUN)
        check(json.dumps(made, indent=3, ensure_ascii=True).encode() + b"\r\n \n")
        check(json.dumps(dict(reversed(list(made.items())))).encode())

    def test_absent_values_signed_as_null(self) -> None:
        made = bundle(RECORDS, SIGNER)
        del made["run_id"], made["proofs"]
        check(sign_bundle(made, SIGNER))
        fields = ("format", "version", "kind", "exported_ms", "head", "count", "tree", "key_id")
        summary = {**{field: made[field] for field in fields}, "run_id": None, "first_seq": 0, "last_seq": 22}
        made["signature"] = base64.b64encode(SIGNER.sign(b"svc-bundle/v1\n" + dump(summary))).decode()
        check(made)

    def test_ends_spelled_out(self) -> None:
        made = bundle(RECORDS, SIGNER)
        check({**made, "first_seq": 0, "last_seq": 22})
        self.refuse({**made, "first_seq": 1}, "first_seq")
        self.refuse({**made, "last_seq": 21}, "last_seq")
        self.refuse({**made, "first_seq": False}, "first_seq")

    def test_signature_and_key_have_one_spelling(self) -> None:
        made = bundle(RECORDS, SIGNER)
        self.refuse({**made, "signature": base64.b64decode(made["signature"]).hex()}, "64 bytes of base64")
        self.refuse({**made, "public_key": base64.b64encode(SIGNER.raw).decode()}, "not a PEM public key")


class Tampered(Case):
    def test_every_member_changed_or_removed(self) -> None:
        for made in (bundle(RECORDS, SIGNER), bundle(RECORDS, SIGNER, OTHER_RUN)):
            for field, value in made.items():
                for changed in (None, 1, True, "x", [], {}, value + 1 if isinstance(value, int) else f"{value}0"):
                    # In Python 1 equals true, in JSON it does not; and a key need not come along.
                    same = changed == value and not isinstance(changed, bool)
                    if same or (field == "public_key" and changed is None):
                        continue
                    self.refuse({**made, field: changed})
                if field not in ("run_id", "proofs", "public_key"):
                    self.refuse({key: item for key, item in made.items() if key != field}, f"no {field}")
        run = bundle(RECORDS, SIGNER, OTHER_RUN)
        for field in ("run_id", "proofs"):
            self.refuse({key: item for key, item in run.items() if key != field})

    def test_every_field_of_every_record(self) -> None:
        for made in (bundle(RECORDS, SIGNER), bundle(RECORDS, SIGNER, LAST_RUN)):
            for position, record in enumerate(made["records"]):
                for field, value in record.items():
                    for changed in (f"{value}x", 7 if value != 7 else 8, None):
                        self.swap(made, position, {**record, field: changed})
                    self.swap(made, position, {key: item for key, item in record.items() if key != field})

    def swap(self, made: Dict[str, Any], position: int, record: Dict[str, Any]) -> None:
        """The changed record as it is, and with its hash made to fit: the signature holds neither."""
        records = [*made["records"][:position], record, *made["records"][position + 1 :]]
        self.refuse({**made, "records": records})
        if seal(record) != made["records"][position]:
            self.refuse({**made, "records": [*records[:position], seal(record), *records[position + 1 :]]})

    def test_records_dropped_doubled_and_moved(self) -> None:
        for made in (bundle(RECORDS, SIGNER), bundle(RECORDS, SIGNER, LAST_RUN)):
            records = made["records"]
            for i in range(len(records)):
                self.refuse({**made, "records": records[:i] + records[i + 1 :]})
                self.refuse({**made, "records": records[:i] + records[i + 1 :], "count": len(records) - 1})
                self.refuse({**made, "records": records[: i + 1] + records[i:], "count": len(records) + 1})
                for j in range(i + 1, len(records)):
                    moved = list(records)
                    moved[i], moved[j] = moved[j], moved[i]
                    self.refuse({**made, "records": moved})

    def test_a_dropped_record_of_a_run_with_links_and_numbers_recomputed(self) -> None:
        made = bundle(RECORDS, SIGNER, LAST_RUN)
        left = [r for i, r in enumerate(made["records"]) if i != 1]
        renumbered = [seal({**r, "run_seq": n}) for n, r in enumerate(left)]
        proofs = {seq: path for seq, path in made["proofs"].items() if seq != str(made["records"][1]["seq"])}
        self.refuse({**made, "records": left, "count": len(left), "proofs": proofs}, "missing")
        self.refuse({**made, "records": renumbered, "count": len(left), "proofs": proofs})

    def test_dropped_last_record_of_a_run_shows_in_the_signed_count(self) -> None:
        made = bundle(RECORDS, SIGNER, LAST_RUN)
        last = str(made["records"][-1]["seq"])
        proofs = {seq: path for seq, path in made["proofs"].items() if seq != last}
        shorter = {**made, "records": made["records"][:-1], "proofs": proofs}
        self.refuse(shorter, "it says it holds")
        self.refuse({**shorter, "count": made["count"] - 1}, "signature")

    def test_a_whole_ledger_rewritten_is_caught_by_the_signature(self) -> None:
        forged = [dict(r) for r in RECORDS]
        forged[3]["actor"] = "mallory"
        made = bundle(rechain(forged), Signer(b"\x09" * 32))
        self.assertFalse(check(made, {}).trusted)
        self.refuse(made, "not the trusted key")
        self.refuse({**made, "key_id": SIGNER.key_id}, "does not belong to its public_key")
        self.refuse({**made, "key_id": SIGNER.key_id, "public_key": SIGNER.pem}, "signature does not match")

    def test_signature_of_another_domain(self) -> None:
        made = bundle(RECORDS, SIGNER)
        fields = ("format", "version", "kind", "exported_ms", "head", "count", "tree", "key_id")
        summary = {**{field: made[field] for field in fields}, "first_seq": 0, "last_seq": 22}
        for domain in (b"", b"svc-anchor/v1\n", b"svc-bundle/v1", b"svc-bundle/v2\n"):
            made["signature"] = base64.b64encode(SIGNER.sign(domain + dump(summary))).decode()
            self.refuse(made, "signature does not match")

    def test_no_key_at_all(self) -> None:
        made = bundle(RECORDS, SIGNER)
        del made["public_key"]
        check(made)
        self.refuse(made, "cannot be checked", {})

    def test_spellings_of_a_signature(self) -> None:
        made = bundle(RECORDS, SIGNER)
        text = made["signature"]
        loose = text[:-3] + chr(ord(text[-3]) + 1) + "=="
        for changed in (text.rstrip("="), text + "\n", " " + text, loose, text[:40] + "\n" + text[40:], "", "é" * 88):
            self.refuse({**made, "signature": changed}, "signature")


class SignedLies(Case):
    """What a holder of the key could sign that still does not hang together."""

    def lie(self, made: Dict[str, Any], saying: str, **changes: Any) -> None:
        self.refuse(sign_bundle({**made, **changes}, SIGNER), saying)

    def test_head_root_size_and_count(self) -> None:
        made = bundle(RECORDS, SIGNER)
        self.lie(made, "its head", head="1" * 64)
        self.lie(made, "tree root", tree={"size": 23, "root": "1" * 64})
        self.lie(made, "its tree has 24", tree={**made["tree"], "size": 24})
        self.lie(made, "its tree has 0", tree={**made["tree"], "size": 0})
        self.lie(made, "it says it holds", count=22)
        self.lie(made, "is not {size, root}", tree={**made["tree"], "depth": 3})

    def test_head_of_a_run_that_holds_the_last_record(self) -> None:
        records = RECORDS[: 1 + max(r["seq"] for r in RECORDS if r.get("run_id") == LAST_RUN)]
        made = bundle(records, SIGNER, LAST_RUN)
        self.assertTrue(check(made).head_tied)
        self.lie(made, "which it holds", head="1" * 64)

    def test_proof_games(self) -> None:
        made = bundle(RECORDS, SIGNER, OTHER_RUN)
        leaves = [leaf(r) for r in RECORDS]
        seq = made["records"][1]["seq"]
        path = made["proofs"][str(seq)]
        other = made["records"][2]["seq"]

        def with_path(changed: Any) -> Dict[str, Any]:
            return {"proofs": {**made["proofs"], str(seq): changed}}

        for changed in (path[:-1], path[1:], path + ["0" * 64], path[::-1], [], made["proofs"][str(other)]):
            self.lie(made, f"record {seq}: its inclusion proof does not lead", **with_path(changed))
        for changed in (None, "x", {}, [1], [path[0].upper() + "A"], [path[0][:-1]], ["0" * 64] * 65):
            self.lie(made, "not a list of hashes", **with_path(changed))
        without = {s: p for s, p in made["proofs"].items() if s != str(seq)}
        self.lie(made, "no inclusion proof", proofs=without)
        self.lie(made, "no inclusion proof", proofs={**without, f"0{seq}": path})
        self.lie(made, "does not hold", proofs={**made["proofs"], "999": path})
        for size in (0, made["records"][0]["seq"]):
            self.lie(made, "beyond the signed tree", tree={**made["tree"], "size": size})
        # The same leaf in a smaller tree, whose root the forger signs: a proof for the wrong size.
        self.lie(made, "does not lead", tree={"size": 23, "root": tree_root(leaves[:22]).hex()})
        # A node passed off as a leaf: the hash of two leaves has another first byte.
        swapped = {**made["proofs"], str(seq): [h.hex() for h in tree_path(seq, leaves)][1:]}
        self.lie(made, "does not lead", proofs=swapped)

    def test_a_run_under_another_name_or_with_a_foreign_record(self) -> None:
        made = bundle(RECORDS, SIGNER, OTHER_RUN)
        self.lie(made, "another run", run_id=LAST_RUN)
        foreign = bundle(RECORDS, SIGNER, LAST_RUN)["records"][0]
        mixed = sorted([*made["records"], foreign], key=lambda r: r["seq"])
        self.lie(made, "another run", records=mixed, count=made["count"] + 1)

    def test_kinds_exchanged(self) -> None:
        run, whole = bundle(RECORDS, SIGNER, OTHER_RUN), bundle(RECORDS, SIGNER)
        self.lie(run, "names none", kind="ledger")
        self.lie(run, "record", kind="ledger", run_id=None)
        self.lie(whole, "names its run", kind="run")
        self.lie(whole, "another run", kind="run", run_id=LAST_RUN)

    def test_needless_proofs_of_a_ledger_must_hold_too(self) -> None:
        made, leaves = bundle(RECORDS, SIGNER), [leaf(r) for r in RECORDS]
        good = {"4": [h.hex() for h in tree_path(4, leaves)]}
        check({**made, "proofs": good})
        self.refuse({**made, "proofs": {"5": good["4"]}}, "does not lead")
        self.refuse({**made, "proofs": {"04": good["4"]}}, "does not hold")


class Form(Case):
    def test_bytes_that_are_no_bundle(self) -> None:
        made = dump(bundle(RECORDS, SIGNER, OTHER_RUN))
        check(made)
        self.refuse(made + b"x", "more after the end")
        self.refuse(made + made, "more after the end")
        self.refuse(b"\xef\xbb\xbf" + made, "byte-order mark")
        self.refuse(made.replace(b'"count"', b'"count":1,"count"'), "appears twice")
        self.refuse(made.replace(b'"seq":', b'"seq":0,"seq":', 1), "appears twice")
        self.refuse(made.replace(b'"version":1', b'"version":1.0'), "plain integer")
        self.refuse(made.replace(b'"count"', b'"extra":1,"count"'), "no bundle has")
        self.refuse(made.decode().encode("utf-16"))
        self.refuse(b"\xff", "not UTF-8")
        self.refuse(b"[]", "'{' was due")
        self.refuse(b"null")
        self.refuse(b'{"records":' + b"[" * 100_000)
        self.refuse(b'{"tree":' + b'{"a":' * 100_000)
        for cut in range(1, len(made), 97):
            self.refuse(made[:cut])
        with self.assertRaises(InputError):
            check(b" \n")

    def test_any_split_of_the_file_reads_the_same(self) -> None:
        made = json.dumps(bundle(RECORDS[:3], SIGNER), indent=1).encode()
        kept = jsonstream._CHUNK
        try:
            for size in (1, 2, 3, 7, 64, 1000):
                jsonstream._CHUNK = size
                check(made)
                self.refuse(made.replace(b'"version": 1', b'"version": 12'))
        finally:
            jsonstream._CHUNK = kept

    def test_every_bit_of_a_small_bundle(self) -> None:
        made = bundle(RECORDS[:1], SIGNER)
        del made["public_key"]  # a blank more or less in a PEM changes nothing, so it has its own test
        data, same = dump(made), copy.deepcopy(made)
        for position in range(len(data)):
            for bit in (0, 3, 6):
                flipped = bytearray(data)
                flipped[position] ^= 1 << bit
                try:
                    if json.loads(flipped.decode()) == same:
                        continue
                except ValueError:
                    pass
                self.refuse(bytes(flipped))


if __name__ == "__main__":
    unittest.main()
