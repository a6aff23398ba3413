"""Anchors: a ledger that only grew passes; one that shrank or was rewritten is named as such."""

from __future__ import annotations

import io
import unittest
from typing import Any, Dict, List, Optional

from reversi_sdk.anchors import Finding, moment, read_anchors, verify_anchors
from reversi_sdk.errors import InputError, Invalid

from .support import Signer, anchor, dump, ledger, lines, rechain, sign_anchor

SIGNER = Signer()
RECORDS = ledger(20, seed=21)


def check(anchors: Any, records: List[Dict[str, Any]], trusted: Optional[Dict[str, Any]] = None) -> List[Finding]:
    data = anchors if isinstance(anchors, bytes) else lines(anchors)
    return verify_anchors(read_anchors(io.BytesIO(data)), io.BytesIO(lines(records)), trusted or {})[1]


class Anchors(unittest.TestCase):
    def problems(self, *arguments: Any) -> List[str]:
        return [finding.problem or "" for finding in check(*arguments)]

    def test_a_growing_ledger(self) -> None:
        made = [anchor(RECORDS[:size], SIGNER, size) for size in (0, 1, 7, 7, 8, 19, 20)]
        self.assertEqual(self.problems(made, RECORDS, SIGNER.trust()), [""] * 7)
        self.assertEqual({f.signature for f in check(made, RECORDS)}, {"unchecked"})
        self.assertEqual({f.signature for f in check(made, RECORDS, SIGNER.trust())}, {"trusted"})
        unsigned = [anchor(RECORDS[:size], None, size) for size in (3, 9)]
        self.assertEqual({f.signature for f in check(unsigned, RECORDS)}, {"none"})

    def test_region_and_key_are_signed_fields(self) -> None:
        made = anchor(RECORDS, None, region="eu", key_id=SIGNER.key_id, public_key=SIGNER.pem)
        good = sign_anchor(made, SIGNER)
        self.assertEqual(check([good], RECORDS)[0].signature, "self-consistent")
        self.assertIn("signature", self.problems([{**good, "region": "us"}], RECORDS)[0])

    def test_truncated(self) -> None:
        made = [anchor(RECORDS[:5], SIGNER), anchor(RECORDS, SIGNER)]
        said = self.problems(made, RECORDS[:12], SIGNER.trust())
        self.assertEqual(said, ["", "the ledger has 12 records but was anchored at 20: it has been truncated"])
        self.assertIn("has 0 records but was anchored at 5", self.problems(made, [])[0])

    def test_rewritten(self) -> None:
        forged = [dict(record) for record in RECORDS]
        forged[10]["actor"] = "mallory"
        made = [anchor(RECORDS[:size], SIGNER) for size in (5, 10, 11, 20)]
        said = self.problems(made, rechain(forged), SIGNER.trust())
        self.assertEqual(said[:2], ["", ""])
        self.assertTrue(all(problem.startswith("history was rewritten") for problem in said[2:]), said)

    def test_same_count_with_another_head(self) -> None:
        other = anchor(ledger(20, seed=22), SIGNER)
        self.assertIn("history was rewritten", self.problems([anchor(RECORDS, SIGNER), other], RECORDS)[1])

    def test_counts_that_go_down(self) -> None:
        made = [anchor(RECORDS[:9], SIGNER), anchor(RECORDS[:8], SIGNER), anchor(RECORDS[:10], SIGNER)]
        said = self.problems(made, RECORDS)
        self.assertIn("never shrinks", said[1])
        self.assertEqual((said[0], said[2]), ("", ""))

    def test_a_ledger_that_does_not_verify(self) -> None:
        broken = [dict(record) for record in RECORDS]
        broken[3]["actor"] = "mallory"
        with self.assertRaises(Invalid) as caught:
            check([anchor(RECORDS, SIGNER)], broken)
        self.assertIn("the ledger, record 3", str(caught.exception))

    def test_every_field_changed_or_removed(self) -> None:
        good = anchor(RECORDS[:9], SIGNER, region="eu")
        for field, value in good.items():
            for changed in (None, 7, True, "x", [], {}, f"{value}0"):
                if changed != value or isinstance(changed, bool):
                    said = self.problems([{**good, field: changed}], RECORDS, SIGNER.trust())
                    self.assertNotEqual(said, [""], (field, changed))
            without = {key: item for key, item in good.items() if key != field}
            self.assertNotEqual(self.problems([without], RECORDS, SIGNER.trust()), [""], field)
        for size, root in ((8, good["tree"]["root"]), (9, "1" * 64), (0, good["tree"]["root"])):
            lying = sign_anchor({**good, "tree": {"size": size, "root": root}}, SIGNER)
            self.assertNotEqual(self.problems([lying], RECORDS, SIGNER.trust()), [""])

    def test_keys(self) -> None:
        stranger = Signer(b"\x08" * 32)
        self.assertIn("not the trusted key", self.problems([anchor(RECORDS, stranger)], RECORDS, SIGNER.trust())[0])
        self.assertIn("not signed", self.problems([anchor(RECORDS, None)], RECORDS, SIGNER.trust())[0])
        both = {**SIGNER.trust(), **stranger.trust()}
        made = [anchor(RECORDS[:4], SIGNER), anchor(RECORDS, stranger)]
        self.assertEqual(self.problems(made, RECORDS, both), ["", ""])

    def test_form(self) -> None:
        good = dump(anchor(RECORDS, SIGNER))
        self.assertEqual(self.problems(good, RECORDS), [""])
        for bad in (good + b"\r\n", b"\n", b"\xef\xbb\xbf" + good, good + b"x", b"null", b"[]", b"\xff", good[:-1]):
            self.assertNotEqual(self.problems(bad, RECORDS), [""], bad[-20:])
        with self.assertRaises(InputError):
            check(b"", RECORDS)

    def test_moments(self) -> None:
        self.assertEqual(moment(1_700_000_000_123), "2023-11-14T22:13:20.123Z")
        self.assertEqual(moment(2**53 - 1), f"{2**53 - 1} ms")
        self.assertEqual(moment(None), "unknown time")


if __name__ == "__main__":
    unittest.main()
