"""The chain: good ledgers pass, and every way to change one is found and named."""

from __future__ import annotations

import hashlib
import json
import unittest
from typing import Any, Dict, List

from reversi_sdk import files
from reversi_sdk.chain import RunNumbers, verify_ledger
from reversi_sdk.errors import Invalid

from .support import dump, ledger, lines, rechain, seal, stream


def check(data: bytes) -> Any:
    return verify_ledger(stream(data))


class GoodLedgers(unittest.TestCase):
    def test_many_sizes_and_contents(self) -> None:
        for seed in range(60):
            records = ledger(1 + seed, seed)
            summary = check(lines(records))
            self.assertEqual((summary.records, summary.head), (len(records), records[-1]["hash"]))

    def test_nothing_is_no_records(self) -> None:
        self.assertEqual(check(b"").records, 0)

    def test_unknown_fields_are_covered_by_the_hash(self) -> None:
        records = ledger(4)
        records[2]["later_version"] = "x"
        check(lines(rechain(records)))

    def test_keys_sort_by_utf16_units(self) -> None:
        # U+1F600 is a surrogate pair that begins with D83D, so it sorts before U+E000 in RFC 8785.
        body = '{"event":"x","prev":"%s","seq":0,"ts_ms":1,"\U0001f600":1,"\ue000":2}' % ("0" * 64)
        digest = hashlib.sha256(body.encode()).hexdigest()
        line = body.replace('"prev"', f'"hash":"{digest}","prev"').encode() + b"\n"
        self.assertEqual(check(line).head, digest)


class Tampered(unittest.TestCase):
    def refuse(self, data: bytes, saying: str = "") -> str:
        with self.assertRaises(Invalid) as caught:
            check(data)
        self.assertIn(saying, str(caught.exception))
        return str(caught.exception)

    def test_every_field_changed_removed_or_added(self) -> None:
        records = ledger(12, seed=5)
        for position, record in enumerate(records):
            for field, value in record.items():
                for changed in self.variants(value):
                    self.refuse(lines(self.swap(records, position, {**record, field: changed})), f"record {position} ")
                without = {key: item for key, item in record.items() if key != field}
                self.refuse(lines(self.swap(records, position, without)), f"record {position} ")
            self.refuse(lines(self.swap(records, position, {**record, "extra": 1})), "it was changed")

    def test_a_field_changed_with_its_hash_made_to_fit_breaks_the_next_link(self) -> None:
        records = ledger(12, seed=6)
        for position in range(len(records) - 1):
            forged = seal({**records[position], "actor": "mallory"})
            said = f"record {position + 1} (line {position + 2}): its prev"
            self.refuse(lines(self.swap(records, position, forged)), said)

    def test_dropped_duplicated_and_moved_records(self) -> None:
        records = ledger(10, seed=7)
        for i in range(len(records)):
            if i < len(records) - 1:
                self.refuse(lines(records[:i] + records[i + 1 :]), "missing")
            self.refuse(lines(records[: i + 1] + records[i:]), "repeated")
            for j in range(i + 1, len(records)):
                moved = list(records)
                moved[i], moved[j] = moved[j], moved[i]
                self.refuse(lines(moved), "order")

    def test_the_chain_renumbered_after_a_drop_still_lacks_a_run_seq(self) -> None:
        records = ledger(20, seed=8, runs=1)
        gone = next(i for i, r in enumerate(records) if "run_id" in r)
        rest = [{**r, "seq": n} for n, r in enumerate(records[:gone] + records[gone + 1 :])]
        self.refuse(lines(rechain(rest)), "a record of the run is missing")

    def test_a_run_seq_repeated(self) -> None:
        records = ledger(20, seed=8, runs=1)
        at = [i for i, r in enumerate(records) if "run_id" in r][1]
        records[at]["run_seq"] = 0
        self.refuse(lines(rechain(records)), "a record of the run is repeated")

    def test_cut_at_every_byte_of_the_last_two_lines(self) -> None:
        records = ledger(5, seed=9)
        data = lines(records)
        start = len(lines(records[:3]))
        for cut in range(start + 1, len(data)):
            if data[cut - 1 : cut] == b"\n":
                check(data[:cut])
            else:
                self.refuse(data[:cut], "torn")

    def test_every_bit_of_a_small_ledger(self) -> None:
        data = lines(ledger(2, seed=3))
        for position in range(len(data)):
            for bit in range(8):
                flipped = bytearray(data)
                flipped[position] ^= 1 << bit
                self.refuse(bytes(flipped))

    def test_not_from_genesis(self) -> None:
        records = ledger(3)
        self.refuse(lines([seal({**records[0], "prev": "1" * 64}), *records[1:]]), "prev")
        self.refuse(lines(records[1:]), "seq is 1 where 0 was due")

    @staticmethod
    def swap(records: List[Dict[str, Any]], position: int, record: Dict[str, Any]) -> List[Dict[str, Any]]:
        return [*records[:position], record, *records[position + 1 :]]

    @staticmethod
    def variants(value: Any) -> List[Any]:
        if isinstance(value, str):
            return [value + " ", "" if value else "x", value.swapcase() + "x", 1, None, [value]]
        if isinstance(value, bool):
            return [not value, 1]
        if isinstance(value, int):
            return [value + 1, -1, str(value), None, True]
        return [value[:-1], [*value, 1], [value], None]


class NotStrict(unittest.TestCase):
    """Lines that say the right thing in the wrong bytes."""

    def setUp(self) -> None:
        self.record = ledger(1, seed=4)[0]
        self.line = dump(self.record)

    def refuse(self, line: bytes, saying: str) -> None:
        with self.assertRaises(Invalid) as caught:
            check(line + b"\n")
        self.assertIn(saying, str(caught.exception))

    def test_form(self) -> None:
        self.refuse(json.dumps(self.record, sort_keys=True).encode(), "canonical")
        self.refuse(self.line + b" ", "canonical")
        self.refuse(b" " + self.line, "canonical")
        self.refuse(dump(dict(reversed(list(self.record.items())))).replace(b'"actor"', b'"\\u0061ctor"'), "canonical")
        self.refuse(self.line + b"\r", "CR LF")
        self.refuse(b"\xef\xbb\xbf" + self.line, "byte-order mark")
        self.refuse(b"", "empty")
        self.refuse(self.line + b"{}", "not JSON")
        self.refuse(self.line.replace(b"{", b'{"actor":"a",', 1), "appears twice")
        self.refuse(self.line.decode().encode("utf-16"), "not UTF-8")
        self.refuse(b"\xff" + self.line, "not UTF-8")

    def test_numbers(self) -> None:
        for number, saying in (
            ("0.0", "plain integer"),
            ("0e0", "plain integer"),
            ("-0", "-0"),
            ("NaN", "not JSON"),
            ("Infinity", "not JSON"),
            ("1e400", "plain integer"),
            ("9007199254740992", "beyond 2^53"),
            ("9" * 100_000, "beyond 2^53"),
            ("00", "not JSON"),
            ("+0", "not JSON"),
        ):
            self.refuse(self.line.replace(b'"seq":0', b'"seq":' + number.encode()), saying)

    def test_values(self) -> None:
        for value in (None, {"a": 1}, [[1]], [None], [{}]):
            self.refuse(dump(seal({**self.record, "detail": value})), "neither text")
        for line in (b"[]", b"1", b"null", b'"x"', b"true"):
            self.refuse(line, "not a JSON object")
        self.refuse(b'{"detail":"\\ud800"}', "surrogate")
        self.refuse(b"[" * 100_000, "")

    def test_shape(self) -> None:
        self.refuse(dump(seal({**self.record, "run_id": "r", "run_seq": True})), "run_seq is not a count")
        halted = {key: value for key, value in self.record.items() if key not in ("run_id", "run_seq")}
        self.refuse(dump(seal({**halted, "run_id": "r"})), "without the other")
        self.refuse(dump(seal({**halted, "run_seq": 0})), "without the other")
        self.refuse(dump({**self.record, "hash": self.record["hash"].upper()}), "lowercase hex")

    def test_a_line_without_end_is_given_up(self) -> None:
        limit, files.MAX_LINE_BYTES = files.MAX_LINE_BYTES, 1000
        try:
            self.refuse(b"x" * 5000, "longer than any record")
        finally:
            files.MAX_LINE_BYTES = limit


class Runs(unittest.TestCase):
    def test_numbers_survive_the_move_to_disk(self) -> None:
        numbers = RunNumbers(in_memory=3)
        for run_seq in range(4):
            for run in range(11):
                numbers.expect(f"run_{run}", run_seq)
        with self.assertRaises(Invalid):
            numbers.expect("run_1", 5)
        with self.assertRaises(Invalid):
            numbers.expect("run_2", 3)
        numbers.close()


if __name__ == "__main__":
    unittest.main()
