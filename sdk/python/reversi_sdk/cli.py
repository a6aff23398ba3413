"""The command line: `python -m reversi_sdk verify | verify-bundle | verify-anchors`.

Exit 0 means that everything checked held; exit 1 is anything else, in one line. Exit 2 is a bundle that holds
with a signature that the approvers file does not account for. `INVALID` is printed only
for evidence that was read and does not hold. What was not checked is always said.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Callable, List, NoReturn, Optional, Sequence

from . import __version__
from .anchors import moment, read_anchors, verify_anchors
from .approvers import load_approvers
from .bundle import Report, verify_bundle
from .chain import verify_ledger
from .errors import InputError, Invalid, show
from .files import open_input
from .keys import load_trusted
from .witness import load_witnesses

UNTRUSTED = (
    "the key was not checked against a trusted key (--pub <file>): the signature shows only that nothing "
    "changed since somebody signed it, not who did"
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # Exit 2 means "a result that needs attention" in this product, so bad usage is plainly 1.
        self.exit(1, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m reversi_sdk", description="Verify svc evidence with nothing but Python.")
    parser.add_argument("--version", action="version", version=f"reversi_sdk {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="<command>", required=True)
    pub = {"action": "append", "default": [], "metavar": "<file>", "help": "a public key you trust; repeatable"}

    verify = commands.add_parser("verify", help="check the hash chain of a ledger.jsonl")
    verify.add_argument("files", nargs="+", metavar="<ledger.jsonl>", help="- reads standard input")
    verify.set_defaults(run=_verify)

    bundle = commands.add_parser("verify-bundle", help="check a signed bundle")
    bundle.add_argument("files", nargs="+", metavar="<bundle.json>", help="- reads standard input")
    bundle.add_argument("--pub", **pub)
    bundle.add_argument(
        "--witness",
        action="append",
        default=[],
        metavar="<key>",
        help="a required witness: its verifier key, or a file with its key; repeatable",
    )
    bundle.add_argument("--quorum", type=int, metavar="<n>", help="how many witnesses must have cosigned (default: all)")
    bundle.add_argument("--approvers", metavar="<file>", help="the approvers you know: says who signed what")
    bundle.set_defaults(run=_verify_bundle)

    anchors = commands.add_parser("verify-anchors", help="check a ledger against its published anchors")
    anchors.add_argument("anchors", metavar="<anchors file>")
    anchors.add_argument("ledger", metavar="<ledger.jsonl>")
    anchors.add_argument("--pub", **pub)
    anchors.set_defaults(run=_verify_anchors)
    return parser


def _count(n: int, one: str) -> str:
    return f"{n:,} {one if n == 1 else one + 's'}"


def _each(files: Sequence[str], check: Callable[[str], List[str]]) -> bool:
    """Run one check over each file. With several files every line is headed by the file's name."""
    good = True
    for path in files:
        head = f"{show(path, 200)}: " if len(files) > 1 else ""
        try:
            found = check(path)
        except Invalid as finding:
            good, found = False, [f"INVALID: {finding}"]
        except InputError as error:
            good = False
            print(f"{head}{error}", file=sys.stderr)
            continue
        for line in found:
            print(head + line)
    return good


def _verify(options: argparse.Namespace) -> bool:
    def check(path: str) -> List[str]:
        with open_input(path) as source:
            records, head = verify_ledger(source)
        if records == 0:
            raise InputError(f"{path} is empty: there is nothing to verify")
        return [f"ok: {records} {'record' if records == 1 else 'records'}, head {head}"]

    return _each(options.files, check)


def _verify_bundle(options: argparse.Namespace) -> bool:
    trusted = load_trusted(options.pub)
    witnesses = load_witnesses(options.witness)
    if options.quorum is not None and not 1 <= options.quorum <= len(witnesses):
        raise InputError(f"--quorum must be from 1 to {len(witnesses)}, the witnesses given with --witness <key>")

    approvers = None if options.approvers is None else load_approvers(options.approvers)
    options.doubt = False

    def check(path: str) -> List[str]:
        with open_input(path) as source:
            report = verify_bundle(source, trusted, witnesses, options.quorum, approvers)
        doubts = report.deleted > 0 or any(signer.doubt is not None for signer in report.signers)
        options.doubt = options.doubt or (approvers is not None and doubts)
        return _describe(report, known=approvers is not None)

    return _each(options.files, check)


def _describe(report: Report, known: bool) -> List[str]:
    span = f", seq {report.first_seq} to {report.last_seq}" if report.count else ""
    whole = report.kind == "ledger"
    what = "whole ledger" if whole else f"run {show(report.run_id)}"
    found = [f"ok: bundle of {what}: {_count(report.count, 'record')}{span}, ledger head {report.head}"]
    if whole:
        found.append("  checked: every record's hash, the chain from genesis to the head, the tree root,")
        found.append("           the signed count")
    else:
        found.append("  checked: every record's hash, links between neighbours, an inclusion proof for each record,")
        found.append("           no gap in the run's own numbering, the signed count")
    found.append(f"  checked: the signature of key {report.key_id}{', a key you trust' if report.trusted else ''}")
    if not whole and not report.head_tied:
        found.append("  not checked: that the head is the ledger's last record, which is not one of this run's")
    for name, size, seconds in report.witnesses:
        first = "record" if size == 1 else _count(size, "record")
        found.append(f"  checked: {show(name)} cosigned the first {first} at {moment(1000 * seconds)}")
    if report.witnesses:
        found.append(f"  checked: every record was seen by enough witnesses, of the first {report.covered}")
    elif report.checkpoints:
        found.append("  not checked: the witnesses' cosignatures, because their keys were not given (--witness <key>)")
    found.extend(_describe_signers(report, known))
    if report.count == 0:
        found.append("  note: it holds no records")
    if not report.trusted:
        found.append(f"  not checked: {UNTRUSTED}")
    return found


def _describe_signers(report: Report, known: bool) -> List[str]:
    found = []
    if report.signers:
        found.append(f"  checked: {_count(len(report.signers), 'signature')} of approvals, each over what its records say")
        if not known:
            found.append("  not checked: whose passkeys signed, because no approvers were given (--approvers <file>)")
    for by, what, code, records, doubt in report.signers if known else ():
        where = ", ".join(f"record {seq}" for seq in records)
        text = show(f"{by} signed with {code}: {what} ({where})", 400)
        found.append(f"  checked: {text}" if doubt is None else f"  UNKNOWN: {text}: {show(doubt)}")
    if report.deleted:
        deleted = _count(report.deleted, "signature")
        found.append(f"  not checked: {deleted} of runs that retention deleted; the runs' archives hold them")
    return found


def _verify_anchors(options: argparse.Namespace) -> bool:
    trusted = load_trusted(options.pub)
    with open_input(options.anchors) as source:
        anchors = read_anchors(source)
    with open_input(options.ledger) as source:
        summary, findings = verify_anchors(anchors, source, trusted)
    for finding in findings:
        count = "? records" if finding.records is None else _count(finding.records, "record")
        verdict = "ok" if finding.problem is None else f"INVALID: {finding.problem}"
        print(f"{moment(finding.ts_ms)}  {count}  {verdict}")
    bad = sum(finding.problem is not None for finding in findings)
    if bad:
        print(f"INVALID: {bad} of {_count(len(findings), 'anchor')} {'does' if bad == 1 else 'do'} not hold")
        return False
    hold = f"{_count(len(findings), 'anchor')} {'holds' if len(findings) == 1 else 'hold'}"
    print(f"ok: {hold} for the ledger of {_count(summary.records, 'record')}, head {summary.head}")
    kinds = {finding.signature for finding in findings}
    if "none" in kinds:
        print("  note: an anchor without a signature does not show who made it")
    if "unchecked" in kinds:
        print("  not checked: the signatures, because no trusted key was given (--pub <file>)")
    if "self-consistent" in kinds:
        print(f"  not checked: {UNTRUSTED}")
    return True


def main(arguments: Optional[Sequence[str]] = None) -> int:
    try:
        options = _parser().parse_args(arguments)
        good = options.run(options)
        sys.stdout.flush()
        return 2 if good and getattr(options, "doubt", False) else 0 if good else 1
    except Invalid as finding:
        print(f"INVALID: {finding}")
    except InputError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        # The reader left (as in `| head`); what could not be said cannot be called good.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"reading failed: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped before the end: nothing was shown", file=sys.stderr)
    return 1


def run() -> NoReturn:
    """The installed command: `main`, and its verdict as the exit code."""
    sys.exit(main())
