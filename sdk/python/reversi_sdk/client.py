"""A small client for agents: open a run, ask before each call, report what came of it.

    client = Client("http://127.0.0.1:8787", key)
    run = client.run(permissions=["payments.refund"])
    refund = run.call("payments.refund", {"id": 7}, "duplicate charge", lambda: do_refund(7))

or, around code of one's own, and for every function that `governed` decorates:

    with run.action("payments.refund", {"id": 7}, "duplicate charge") as action:
        action.result = do_refund(7)
    with run:
        refund(7)

Every intent and outcome carries an idempotency key, so a lost answer is asked for again and never counted
twice. The tool runs only after the service said `allow` or `would_block`.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
import uuid
import warnings
from types import TracebackType
from typing import Any, Callable, Dict, Generator, Generic, List, NamedTuple, Optional, Sequence, Type, TypeVar
from urllib.parse import quote

from .approvers import ApproversGuard, Call
from .current import enter, leave
from .effect import observe
from .errors import Invalid
from .exact import exact_size, told
from .reading import Read, Reading
from .transport import ServiceError, Transport, encode_body

T = TypeVar("T")
R = TypeVar("R")

# The service takes 1 MB; what is left is for the other fields.
MAX_RESULT_BYTES = 1_000_000 - 16_384
_APPROVAL_ID = re.compile(r"\bapr_[0-9A-Za-z-]+")
_LONGEST_WAIT_S = 30.0
# Older Pythons have timeouts of sockets and of asyncio that are no TimeoutError.
_OPEN_ENDED = (TimeoutError, socket.timeout, asyncio.TimeoutError)


class Blocked(Exception):
    """The service refused the call, so it did not run.

    `approval_id` names the request for it, and `waits` says whether a person can still approve that; `hints` say what
    can be done instead. `offer` is `{approval_id, args}` where whoever denied it approved other arguments in its place.
    """

    def __init__(
        self, tool: str, reasons: Sequence[str], approval_id: Optional[str], hints: Sequence[str] = ()
    ) -> None:
        super().__init__(f"{tool} is blocked: {'; '.join(reasons) or 'no reason given'}")
        self.tool = tool
        self.reasons = list(reasons)
        self.approval_id = approval_id
        self.hints = list(hints)
        self.waits = approval_id is not None
        self.offer: Optional[Dict[str, Any]] = None

    @classmethod
    def by(cls, tool: str, decision: "Decision") -> "Blocked":
        refusal = cls(tool, decision.reasons, decision.approval_id, decision.hints)
        refusal.waits = refusal.waits and decision.ended is None
        refusal.offer = decision.offer
        return refusal


class Uncertain(Exception):
    """Raise this in a tool function when it cannot be known whether the tool took effect."""


class EffectMissing(Uncertain):
    """The tool reported success, but a read does not show its effect; the step is recorded as `uncertain`."""

    def __init__(self, tool: str, result: Any) -> None:
        super().__init__(f"{tool} reported success, but a read does not show its effect")
        self.tool = tool
        self.result = result


class OutcomeNotRecorded(Exception):
    """The tool ran, but its outcome could not be reported; the step stays unresolved until it is.

    `report` is what should have been sent: `run.outcome(error.step, **error.report)` tries again.
    """

    def __init__(self, step: int, report: Dict[str, Any], result: Any, cause: ServiceError) -> None:
        super().__init__(f"step {step} ended as {report['status']} but that could not be recorded: {cause}")
        self.step = step
        self.report = report
        self.result = result


class Decision(NamedTuple):
    decision: str
    step: Optional[int]
    reasons: List[str]
    approval_id: Optional[str]
    hints: List[str] = []
    # The read that the undo will need, `{tool, arguments}`; what it shows is told with the outcome.
    before: Optional[Dict[str, Any]] = None
    # The request that was waited for, where it ended without a yes.
    ended: Optional[Dict[str, Any]] = None
    # The read that shows after a success whether the call did what it said.
    effect_check: Optional[Dict[str, Any]] = None
    # What was approved in place of the call when it was denied.
    offer: Optional[Dict[str, Any]] = None

    @property
    def may_run(self) -> bool:
        # Anything but the two known words is a no: an answer that is not understood never runs a tool.
        return self.decision in ("allow", "would_block") and self.step is not None


Report = Dict[str, Any]
Steps = Generator[Callable[[], Any], Any, Decision]


def drive(steps: Steps) -> Decision:
    """Does one step after the other, here and now."""
    try:
        step = next(steps)
        while True:
            step = steps.send(step())
    except StopIteration as done:
        return done.value


def new_run_id() -> str:
    """`run_<uuidv7>`, as the service makes them: ids made later sort later."""
    stamp = time.time_ns() // 1_000_000
    value = stamp << 80 | 0x7 << 76 | int.from_bytes(os.urandom(10), "big") & ((1 << 76) - 1)
    return f"run_{uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62)}"


class Client:
    """One service and one key. `timeout` is in seconds and covers each request, not each call of a tool.

    With `approvers`, the path of an approvers file, the client verifies signed approvals itself before each call that
    the file names. It keeps used approvals in the directory `<file>.used`.
    """

    def __init__(
        self,
        url: str,
        key: str,
        timeout: float = 15.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
        approvers: Optional[str] = None,
    ) -> None:
        self._guard = None if approvers is None else ApproversGuard(approvers)
        self._transport = Transport(url, key, timeout, attempts, sleep)
        self._timeout = timeout
        self._sleep = sleep

    def run(
        self,
        permissions: Sequence[str],
        run_id: Optional[str] = None,
        mode: Optional[str] = None,
        reason: Optional[str] = None,
        given: Optional[Sequence[str]] = None,
        parent: Optional[str] = None,
    ) -> "Run":
        """Open a run with a scope that is fixed from here on. `given` are texts of people; see `Run.give`.

        With `parent`, a run of yours, the run is its child and shares what is counted per run."""
        # The id is chosen here so that a lost answer can be told from a second run: a repeat is a 409.
        body: Dict[str, Any] = {"permissions": list(permissions), "run_id": run_id or new_run_id()}
        if mode is not None:
            body["mode"] = mode
        if reason is not None:
            body["reason"] = reason
        if given is not None:
            body["given"] = list(given)
        if parent is not None:
            body["parent"] = parent
        try:
            opened = self._transport.request("POST", "/v1/runs", body)
        except ServiceError as error:
            if error.status != 0 or run_id is not None:
                raise
            opened = self._opened_after_all(body, error)
        return Run(self, opened["run_id"], opened.get("mode"), opened.get("scope_seal"))

    def resume(self, run_id: str) -> "Run":
        """Continue a run that this key opened earlier, with its own mode and scope."""
        found = self.get_run(run_id)
        return Run(self, found["run_id"], found.get("mode"), (found.get("scope") or {}).get("seal"))

    def runs(self) -> List[str]:
        return list(self._transport.request("GET", "/v1/runs")["runs"])

    def get_run(self, run_id: str) -> Dict[str, Any]:
        return self._transport.request("GET", f"/v1/runs/{quote(run_id, safe='')}")

    def approval(self, approval_id: str, wait: float = 0) -> Dict[str, Any]:
        """An approval request; with `wait`, answered when it is decided or after that many seconds."""
        path = f"/v1/approvals/{quote(approval_id, safe='')}"
        if wait <= 0:
            return self._transport.request("GET", path)
        return self._transport.request("GET", f"{path}?wait={int(wait)}", timeout=self._timeout + wait)

    def _opened_after_all(self, body: Dict[str, Any], error: ServiceError) -> Dict[str, Any]:
        """No answer came to opening a run. An id made here that now exists can only be ours."""
        try:
            found = self.get_run(body["run_id"])
        except ServiceError as missing:
            if missing.status != 404:
                raise error from None
            return self._transport.request("POST", "/v1/runs", body)
        return {**found, "scope_seal": (found.get("scope") or {}).get("seal")}


class Run:
    """An open run. Steps are numbered by the service in the order it accepted their intents."""

    def __init__(self, client: Client, run_id: str, mode: Optional[str], scope_seal: Optional[str]) -> None:
        self.run_id = run_id
        self.mode = mode
        self.scope_seal = scope_seal
        self._client = client
        self._path = f"/v1/runs/{quote(run_id, safe='')}"
        self._entered: List[Any] = []

    def intent(
        self,
        tool: str,
        args: Any,
        reason: str,
        depends_on: Optional[Sequence[int]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Decision:
        """Ask for a call. A refusal is a value here; `call` turns it into an exception."""
        body: Dict[str, Any] = {"tool": tool, "args": args, "reason": reason}
        if depends_on is not None:
            body["depends_on"] = list(depends_on)
        answer = self._post(f"{self._path}/intents", body, idempotency_key)
        reasons = [str(text) for text in answer.get("reasons") or []]
        hints = [str(text) for text in answer.get("hints") or []]
        approval_id = _approval_id(answer, reasons)
        before = answer.get("before")
        asked = before if isinstance(before, dict) else None
        check = answer.get("effect_check")
        decision = Decision(str(answer.get("decision")), answer.get("step"), reasons, approval_id, hints, asked)
        decision = decision._replace(effect_check=check if isinstance(check, dict) else None)
        objection = self._objection(decision, tool, args)
        if objection is None:
            return decision
        try:
            self.outcome(int(decision.step or 0), "failed", error=objection)
        except ServiceError:
            pass  # A service that made the step up cannot record its outcome either.
        return Decision("block", None, [objection], None)

    def _objection(self, decision: Decision, tool: str, args: Any) -> Optional[str]:
        """Why the approvers file does not permit an allowed call; None if it does."""
        guard, approval_id = self._client._guard, decision.approval_id
        if guard is None or not decision.may_run:
            return None
        path = f"/v1/approvals/{quote(approval_id or '', safe='')}/signatures"
        request = self._client._transport.request
        evidence = lambda: None if approval_id is None else request("GET", path)  # noqa: E731
        return guard.objection(Call(self.run_id, tool, args), evidence)

    def outcome(
        self,
        step: int,
        status: str,
        result: Any = None,
        error: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        **seen: Any,
    ) -> Dict[str, Any]:
        """Report how a step ended: `succeeded`, `failed` or `uncertain`; `before=`, `after=`, `observed=` are what reads showed."""
        body: Dict[str, Any] = {"status": status, **_seen(seen)}
        if result is not None:
            body["result"] = result
        if error is not None:
            body["error"] = error
        return self._post(f"{self._path}/steps/{int(step)}/outcome", body, idempotency_key)

    def give(self, texts: Sequence[str]) -> List[Dict[str, Any]]:
        """Tell the run what a person asked for, so that values in it do not count as foreign. The key needs `may_give`."""
        given = self._client._transport.request("POST", f"{self._path}/given", {"texts": list(texts)})
        return list(given["given"])

    def plan(self) -> Dict[str, Any]:
        """The rollback plan. The service shows it to auditors and above, so a plain agent key gets a 403."""
        return self._client._transport.request("GET", f"{self._path}/plan")

    def state(self) -> Dict[str, Any]:
        return self._client.get_run(self.run_id)

    def call(
        self,
        tool: str,
        args: Any,
        reason: str,
        fn: Callable[[], T],
        depends_on: Optional[Sequence[int]] = None,
        wait_for_approval: float = 0,
        read: Optional[Read] = None,
    ) -> T:
        """Ask, run `fn` only if it may run, and report the outcome. Returns what `fn` returned.

        Raises Blocked where the service refused. An exception from `fn` is reported as `failed`, or as
        `uncertain` where it is Uncertain or a timeout, and then raised as it is. With `wait_for_approval`
        the call waits up to that many seconds for a person to decide. `read` gets the `{tool, arguments}` that a
        manifest's `before` asks for and answers what is there; where that fails, ReadFailed is raised and `fn` not run.
        It also reads what a manifest's `effect_check` asks for; where the effect is not there, EffectMissing is raised.
        """
        decision = drive(self.deciding(tool, args, reason, depends_on, wait_for_approval))
        step, reading = self._accepted(tool, decision), Reading(decision.before, read)
        if reading.wanted:
            try:
                reading.was(reading.now())
            except BaseException as error:
                failed = reading.failed(error)
                if failed is not None:
                    self._report(step, failed.report(), None, error)
                    raise failed.instead_of(error) from error
        try:
            result = fn()
        except BaseException as error:
            self._report(step, {**failure_report(error), **reading.seen}, None, error)
            raise
        if reading.wanted:
            try:
                reading.is_now(reading.now())
            except Exception:  # the call was made, and is told without what it left
                pass
        values = {"args": args, "result": result, **reading.seen}
        seen = {**reading.seen, **observe(decision.effect_check, values, read)}
        self._judged(tool, self._report(step, success_report(result, seen), result), result)
        return result

    def action(
        self,
        tool: str,
        args: Any,
        reason: str,
        depends_on: Optional[Sequence[int]] = None,
        wait_for_approval: float = 0,
    ) -> "Action":
        """The same around a block of code: `with run.action(...) as action:`. What raises in it has failed."""
        return Action(self, tool, args, reason, depends_on, wait_for_approval)

    def __enter__(self) -> "Run":
        """Until the end of the block, functions that `governed` decorates ask in this run."""
        self._entered.append(enter(self))
        return self

    def __exit__(self, *_: Any) -> None:
        leave(self._entered.pop())

    def _accepted(self, tool: str, decision: Decision) -> int:
        if not decision.may_run or decision.step is None:
            raise Blocked.by(tool, decision)
        return decision.step

    def _judged(self, tool: str, answer: Dict[str, Any], result: Any) -> None:
        if answer.get("effect_check") == "missing":
            raise EffectMissing(tool, result)

    def _report(
        self, step: int, report: Report, result: Any, error: Optional[BaseException] = None
    ) -> Dict[str, Any]:
        try:
            return self.outcome(step, **report)
        except ServiceError as lost:
            raise OutcomeNotRecorded(step, report, result, lost) from error or lost

    def deciding(
        self, tool: str, args: Any, reason: str, depends_on: Optional[Sequence[int]], wait_s: float
    ) -> "Steps":
        """The decision, asked for again while a request for approval is open and time is left.

        Asking again writes a `blocked` record each time, so the service is asked to say when the request is
        decided; only where this key may not read approvals does the pause between intents grow instead.
        It yields what has to be done next and is sent what came of it, so that asyncio goes the same way.
        """
        deadline = time.monotonic() + wait_s
        ask = lambda: self.intent(tool, args, reason, depends_on)  # noqa: E731
        decision: Decision = yield ask
        awaited, pause = decision.approval_id, 2.0
        while not decision.may_run and awaited is not None and decision.approval_id == awaited:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            waited = min(left, _LONGEST_WAIT_S)
            approval = yield lambda: self._await_decision(awaited, waited)
            status = None if approval is None else approval.get("status")
            if status in ("pending", "escalated"):
                continue
            if status in ("denied", "expired"):
                reasons = [_ending(awaited, approval) if awaited in reason else reason for reason in decision.reasons]
                return decision._replace(reasons=reasons, ended=approval, offer=_offer(approval))
            if status is None:
                rest = min(left, pause)
                yield lambda: self._client._sleep(rest)
                pause = min(pause * 1.5, 15.0)
            # A new idempotency key, since the old one would bring back the old answer.
            decision = yield ask
        if decision.may_run or decision.approval_id is None:
            return decision
        offer = yield lambda: self._offered(decision.approval_id)
        return decision._replace(offer=offer)

    def _offered(self, approval_id: str) -> Optional[Dict[str, Any]]:
        """An offer is good news beside the refusal; that it cannot be had now does not change the refusal."""
        try:
            return _offer(self._client.approval(approval_id))
        except ServiceError:
            return None

    def _await_decision(self, approval_id: str, wait_s: float) -> Optional[Dict[str, Any]]:
        """A request once decided or after the wait; None where this key may not see it."""
        started = time.monotonic()
        try:
            approval = self._client.approval(approval_id, wait=max(1.0, wait_s))
        except ServiceError as error:
            if error.status in (400, 403, 404, 405):
                return None
            raise
        # A service that answers at once instead of waiting must not be asked in a tight loop.
        if approval.get("status") in ("pending", "escalated") and time.monotonic() - started < 1.0:
            self._client._sleep(min(wait_s, 2.0))
        return approval

    def _post(self, path: str, body: Dict[str, Any], idempotency_key: Optional[str]) -> Dict[str, Any]:
        key = idempotency_key or uuid.uuid4().hex
        answer = self._client._transport.request("POST", path, body, idempotency_key=key)
        return answer if isinstance(answer, dict) else {}


def _offer(approval: Any) -> Optional[Dict[str, Any]]:
    """None once its arguments are gone: it was used, or has ended."""
    offer = approval.get("offer") if isinstance(approval, dict) else None
    return offer if isinstance(offer, dict) and offer.get("args") is not None else None


def _ending(approval_id: str, approval: Dict[str, Any]) -> str:
    """How a request ended that did not end with a yes: by whom, and what they said."""
    status, by, note = (approval.get(field) for field in ("status", "decided_by", "note"))
    if status == "expired":
        return f"approval request {approval_id} {'was withdrawn' if note == 'withdrawn' else 'has expired'}"
    return f"approval request {approval_id} was {status}{f' by {by}' if by else ''}{f': {note}' if note else ''}"


class Block(Generic[R]):
    """What a block of code asks for, in a run of either kind, and what its code leaves here."""

    def __init__(
        self, run: R, tool: str, args: Any, reason: str, depends_on: Optional[Sequence[int]], wait_s: float
    ) -> None:
        self.result: Any = None
        self.step: Optional[int] = None
        self._run = run
        self._asked = (tool, args, reason, depends_on, wait_s)


class Action(Block[Run]):
    """One call around a block of code. Set `result` to what the tool answered; an undo may need it."""

    def __enter__(self) -> "Action":
        self.step = self._run._accepted(self._asked[0], drive(self._run.deciding(*self._asked)))
        return self

    def __exit__(
        self, _: Optional[Type[BaseException]], error: Optional[BaseException], __: Optional[TracebackType]
    ) -> None:
        assert self.step is not None
        self._run._report(self.step, block_report(self.result, error), self.result, error)


def block_report(result: Any, error: Optional[BaseException]) -> Report:
    return success_report(result) if error is None else failure_report(error)


def success_report(result: Any, seen: Optional[Dict[str, Any]] = None) -> Report:
    """With what was there before and after; the result gives way to them where a request cannot hold all."""
    return {"status": "succeeded", **(seen or {}), "result": _reportable(result, len(encode_body(seen or {})))}


def failure_report(error: BaseException) -> Report:
    """A timeout or an interrupt leaves open whether the tool took effect; anything else is a failure."""
    unknown = isinstance(error, (Uncertain, *_OPEN_ENDED)) or not isinstance(error, Exception)
    return {"status": "uncertain" if unknown else "failed", "error": told(f"{type(error).__name__}: {error}")}


def _approval_id(answer: Dict[str, Any], reasons: Sequence[str]) -> Optional[str]:
    if isinstance(answer.get("approval_id"), str):
        return answer["approval_id"]
    for reason in reasons:
        found = _APPROVAL_ID.search(reason)
        if found is not None and reason.startswith("approval required"):
            return found.group()
    return None


def _seen(seen: Dict[str, Any]) -> Dict[str, Any]:
    unknown = [name for name in seen if name not in ("before", "after", "observed")]
    if unknown:
        raise TypeError(f"outcome() got an unexpected keyword argument {unknown[0]!r}")
    return seen


def _reportable(result: Any, taken: int) -> Any:
    """The result if it can be reported. The tool already ran, so a result that is no JSON must not fail it."""
    try:
        if exact_size(result) <= MAX_RESULT_BYTES - taken:
            return result
        problem = "is too large to report"
    except Invalid as error:
        problem = f"cannot be kept exactly: {error}"
    except (TypeError, ValueError, RecursionError):
        problem = "is not JSON"
    warnings.warn(f"the tool's result {problem}; without it an undo that needs it cannot be built", stacklevel=5)
    return None
