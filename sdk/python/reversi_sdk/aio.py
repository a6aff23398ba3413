"""The client for asyncio.

    client = AsyncClient("http://127.0.0.1:8787", key)
    run = await client.run(permissions=["payments.refund"])
    refund = await run.call("payments.refund", {"id": 7}, "duplicate charge", lambda: do_refund(7))

Each request is made by the client for threads, in a thread of its own, so that both ask, wait and repeat in the
same way; the tool's own coroutine runs in the loop. A task that is cancelled while its tool runs leaves the step
`uncertain`; one that is cancelled while it asks leaves no step that looks as if its tool had run.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, TypeVar, Union

from .client import (
    Block,
    Client,
    Decision,
    Report,
    Run,
    block_report,
    failure_report,
    success_report,
)
from .current import enter, leave
from .effect import observe_later
from .reading import Read, Reading

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Daemon threads: a wait for an approval never keeps a program from ending, nor fills up the loop's own pool."""
    loop = asyncio.get_running_loop()
    future: "asyncio.Future[T]" = loop.create_future()

    def settle(how: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            how(value)

    def tell(how: Callable[[Any], None], value: Any) -> None:
        try:
            loop.call_soon_threadsafe(settle, how, value)
        except RuntimeError:
            pass  # The loop has ended meanwhile, and with it whoever asked.

    def target() -> None:
        try:
            value = work()
        except BaseException as error:
            tell(future.set_exception, error)
        else:
            tell(future.set_result, value)

    threading.Thread(target=target, name="reversi-sdk", daemon=True).start()
    return await future


class AsyncClient:
    """As Client, with the same settings."""

    def __init__(
        self, url: str, key: str, timeout: float = 15.0, attempts: int = 4, approvers: Optional[str] = None
    ) -> None:
        self._client = Client(url, key, timeout, attempts, approvers=approvers)

    async def run(
        self,
        permissions: Sequence[str],
        run_id: Optional[str] = None,
        mode: Optional[str] = None,
        reason: Optional[str] = None,
        given: Optional[Sequence[str]] = None,
        parent: Optional[str] = None,
    ) -> "AsyncRun":
        run = await in_thread(lambda: self._client.run(permissions, run_id, mode, reason, given, parent))
        return AsyncRun(run)

    async def resume(self, run_id: str) -> "AsyncRun":
        return AsyncRun(await in_thread(lambda: self._client.resume(run_id)))

    async def runs(self) -> List[str]:
        return await in_thread(self._client.runs)

    async def get_run(self, run_id: str) -> Dict[str, Any]:
        return await in_thread(lambda: self._client.get_run(run_id))

    async def approval(self, approval_id: str, wait: float = 0) -> Dict[str, Any]:
        return await in_thread(lambda: self._client.approval(approval_id, wait))


class AsyncRun:
    """As Run. `sync` is the same run for code that is not asynchronous."""

    def __init__(self, run: Run) -> None:
        self.sync = run
        self.run_id = run.run_id
        self.mode = run.mode
        self.scope_seal = run.scope_seal
        self._entered: List[Any] = []

    async def intent(
        self,
        tool: str,
        args: Any,
        reason: str,
        depends_on: Optional[Sequence[int]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Decision:
        return await in_thread(lambda: self.sync.intent(tool, args, reason, depends_on, idempotency_key))

    async def outcome(
        self,
        step: int,
        status: str,
        result: Any = None,
        error: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        **seen: Any,
    ) -> Dict[str, Any]:
        return await in_thread(lambda: self.sync.outcome(step, status, result, error, idempotency_key, **seen))

    async def give(self, texts: Sequence[str]) -> List[Dict[str, Any]]:
        return await in_thread(lambda: self.sync.give(texts))

    async def plan(self) -> Dict[str, Any]:
        return await in_thread(self.sync.plan)

    async def state(self) -> Dict[str, Any]:
        return await in_thread(self.sync.state)

    async def call(
        self,
        tool: str,
        args: Any,
        reason: str,
        fn: Callable[[], Union[T, Awaitable[T]]],
        depends_on: Optional[Sequence[int]] = None,
        wait_for_approval: float = 0,
        read: Optional[Read] = None,
    ) -> T:
        """Ask, run `fn` only if it may run, report the outcome. What `fn` and `read` answer is awaited where it has to be."""
        decision = await self._decided(tool, args, reason, depends_on, wait_for_approval)
        step, reading = self.sync._accepted(tool, decision), Reading(decision.before, read)
        if reading.wanted:
            try:
                reading.was(await _awaited(reading.now()))
            except BaseException as error:
                failed = reading.failed(error)
                if failed is not None:
                    await self._report(step, failed.report(), None, error)
                    raise failed.instead_of(error) from error
        try:
            result = await _awaited(fn())
        except BaseException as error:
            await self._report(step, {**failure_report(error), **reading.seen}, None, error)
            raise
        if reading.wanted:
            try:
                reading.is_now(await _awaited(reading.now()))
            except Exception:  # the call was made, and is told without what it left
                pass
        values = {"args": args, "result": result, **reading.seen}
        seen = {**reading.seen, **await observe_later(decision.effect_check, values, read, asyncio.sleep)}
        self.sync._judged(tool, await self._report(step, success_report(result, seen), result), result)
        return result  # type: ignore[no-any-return]

    def action(
        self,
        tool: str,
        args: Any,
        reason: str,
        depends_on: Optional[Sequence[int]] = None,
        wait_for_approval: float = 0,
    ) -> "AsyncAction":
        return AsyncAction(self, tool, args, reason, depends_on, wait_for_approval)

    async def __aenter__(self) -> "AsyncRun":
        self._entered.append(enter(self.sync))
        return self

    async def __aexit__(self, *_: Any) -> None:
        leave(self._entered.pop())

    async def _accepted(self, tool: str, *asked: Any) -> int:
        return self.sync._accepted(tool, await self._decided(tool, *asked))

    async def _decided(
        self, tool: str, args: Any, reason: str, depends_on: Optional[Sequence[int]], wait_s: float
    ) -> Decision:
        steps = self.sync.deciding(tool, args, reason, depends_on, wait_s)
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._unless_cancelled(step))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    async def _unless_cancelled(self, step: Callable[[], Any]) -> Any:
        """Does one step of asking. If its answer comes when the task that would run the tool is gone, the step ends failed."""
        lock = threading.Lock()
        gone, late = False, None

        def work() -> Any:
            nonlocal late
            answer = step()
            with lock:
                late = answer
                if not gone:
                    return answer
            self._never_ran(answer)
            return answer

        try:
            return await in_thread(work)
        except asyncio.CancelledError:
            with lock:
                gone = True
                answered = late
            threading.Thread(target=self._never_ran, args=(answered,), daemon=True).start()
            raise

    def _never_ran(self, answer: Any) -> None:
        if isinstance(answer, Decision) and answer.may_run and answer.step is not None:
            self.sync.outcome(answer.step, "failed", error="cancelled before the tool ran")

    async def _report(
        self, step: int, report: Report, result: Any, error: Optional[BaseException] = None
    ) -> Dict[str, Any]:
        # A second cancellation does not reach the thread: what is being reported is reported.
        return await in_thread(lambda: self.sync._report(step, report, result, error))


async def _awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


class AsyncAction(Block["AsyncRun"]):
    """One call around a block: `async with run.action(...) as action:`. Set `result` to what the tool answered."""

    async def __aenter__(self) -> "AsyncAction":
        self.step = await self._run._accepted(*self._asked)
        return self

    async def __aexit__(self, _: Any, error: Optional[BaseException], __: Any) -> None:
        assert self.step is not None
        await self._run._report(self.step, block_report(self.result, error), self.result, error)
