"""The chain: what each record says about the one before it, over a whole ledger, one line at a time.

Memory does not grow with the ledger. The one thing that could, the next `run_seq` of every run, moves to a
temporary SQLite file once there are many runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Dict, NamedTuple, Optional

from .errors import Invalid, show
from .files import lines
from .record import GENESIS, check_hash, check_shape
from .strictjson import canonical, decode_utf8, parse

if TYPE_CHECKING:
    import sqlite3

RUNS_IN_MEMORY = 200_000


class RunNumbers:
    """How many records of each run have been seen, in memory until that is a lot, then on disk as well."""

    def __init__(self, in_memory: int = RUNS_IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._recent: Dict[str, int] = {}
        self._spilled: Optional[sqlite3.Connection] = None

    def expect(self, run_id: str, run_seq: int) -> None:
        expected = self._count(run_id)
        if run_seq != expected:
            how = "a record of the run is missing" if run_seq > expected else "a record of the run is repeated"
            raise Invalid(f"its run_seq is {run_seq} where {expected} was due: {how}")
        self._recent[run_id] = expected + 1
        if len(self._recent) > self._in_memory:
            self._spill()

    def close(self) -> None:
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None

    def _count(self, run_id: str) -> int:
        count = self._recent.get(run_id)
        if count is None and self._spilled is not None:
            row = self._spilled.execute("SELECT n FROM runs WHERE id = ?", (run_id,)).fetchone()
            count = row[0] if row else None
        return count or 0

    def _spill(self) -> None:
        if self._spilled is None:
            import sqlite3  # here, because a Python built without it can still verify every smaller ledger

            # The empty name is SQLite's private temporary file: it vanishes with the connection.
            self._spilled = sqlite3.connect("", isolation_level=None)
            self._spilled.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID")
        self._spilled.execute("BEGIN")
        self._spilled.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?)", self._recent.items())
        self._spilled.execute("COMMIT")
        self._recent.clear()


class Chain:
    """A ledger read so far. `add` takes the next record or raises; it never repairs and never skips."""

    def __init__(self) -> None:
        self.count = 0
        self.head = GENESIS
        self._runs = RunNumbers()

    def add(self, record: Any) -> bytes:
        """The record's canonical bytes without its hash, once everything it claims has been checked.

        Its own hash comes first: "it was changed" is the truer finding where a change also breaks a link.
        """
        body = check_hash(check_shape(record))
        self.link(record)
        return body

    def link(self, record: Dict[str, Any]) -> None:
        """Take a record that holds in itself: its place in the ledger and in its run."""
        if record["seq"] != self.count:
            raise Invalid(f"its seq is {record['seq']} where {self.count} was due: {self._displaced(record['seq'])}")
        if record["prev"] != self.head:
            raise Invalid("its prev is not the hash of the record before it")
        if "run_id" in record:
            self._runs.expect(record["run_id"], record["run_seq"])
        self.count += 1
        self.head = record["hash"]

    def close(self) -> None:
        self._runs.close()

    def _displaced(self, seq: int) -> str:
        return "records are missing or out of order" if seq > self.count else "a record is repeated or out of order"


class Summary(NamedTuple):
    records: int
    head: str


def verify_ledger(source: BinaryIO, on_record: Optional[Callable[[Chain, bytes], None]] = None) -> Summary:
    """Check a ledger file line by line. `on_record` sees the chain after each record, and its leaf bytes."""
    chain = Chain()
    try:
        for number, line, ended in lines(source):
            if not ended:
                raise Invalid(_torn(chain), f"line {number}")
            try:
                record = _read_line(line)
                body = chain.add(record)
            except Invalid as finding:
                raise finding.at(f"record {chain.count} (line {number})") from None
            if on_record is not None:
                on_record(chain, body)
    finally:
        chain.close()
    return Summary(chain.count, chain.head)


def _read_line(line: bytes) -> Any:
    """The line's record, where the line is its canonical JSON to the byte."""
    if line.endswith(b"\r"):
        raise Invalid("the line ends in CR LF: the file was converted on the way")
    if not line:
        raise Invalid("the line is empty")
    record = parse(decode_utf8(line))
    if canonical(record) != line:
        raise Invalid(f"is not in canonical form{_hint(record)}")
    return record


def _hint(record: Any) -> str:
    return "" if isinstance(record, dict) else f" and is no object but {show(record, 20)}"


def _torn(chain: Chain) -> str:
    sound = f"the {chain.count} records before it are sound, head {chain.head}" if chain.count else "it is the only one"
    return f"the last line is torn (it has no line end); {sound}"
