"""The decorator, the context managers, asyncio and the wrappers of frameworks.

The frameworks cannot be installed where these tests run. Stand-ins with the parts of their interfaces that the wrappers
use are put in their places; what only the real ones do is not shown here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import sys
import threading
import types
import unittest
from typing import Any, Callable, Dict, List, Optional, Tuple
from unittest import mock

from reversi_sdk import AsyncClient, Blocked, Client, OutcomeNotRecorded, Uncertain, governed
from reversi_sdk.aio import AsyncRun

from .test_client import PENDING, Answer, ClientCase, Service, ordinary


def refusing(hints: List[str]) -> Callable[..., Optional[Answer]]:
    blocked = {"decision": "block", "reasons": [PENDING], "hints": hints}
    return lambda m, p, b, h: (200, blocked) if p.endswith("/intents") else ordinary(m, p, b, h)


def sent(service: Service, ending: str) -> List[Dict[str, Any]]:
    return [seen["body"] for seen in service.seen if seen["path"].endswith(ending)]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    colour: Colour


class Decorator(ClientCase):
    def test_the_call_is_asked_for_as_it_is_made(self) -> None:
        service, client = self.serve()

        @governed("draw", reason=lambda args: f"at {args['where']['x']}", without=["session"])
        def draw(session: Any, where: Point, *more: int, size: int = 3, **rest: Any) -> str:
            "Draws."
            return f"{where.x} {more} {size} {rest}"

        with client.run(permissions=[]):
            self.assertEqual(draw(object(), Point(1, Colour.RED), 2, 3, deep=True), "1 (2, 3) 3 {'deep': True}")
        args = {"where": {"x": 1, "colour": "red"}, "more": [2, 3], "size": 3, "deep": True}
        self.assertEqual(sent(service, "/intents"), [{"tool": "draw", "args": args, "reason": "at 1"}])
        self.assertEqual(sent(service, "/outcome")[0]["status"], "succeeded")
        self.assertEqual((draw.__name__, draw.__doc__), ("draw", "Draws."))

    def test_methods_leave_themselves_out(self) -> None:
        service, client = self.serve()

        class Shop:
            @governed()
            def refund(self, id: str) -> str:
                return id

        with client.run(permissions=[]):
            self.assertEqual(Shop().refund("7"), "7")
        self.assertEqual(sent(service, "/intents")[0]["args"], {"id": "7"})

    def test_nothing_runs_without_a_run_or_with_arguments_that_nobody_can_judge(self) -> None:
        _, client = self.serve()
        tool = governed("t")(lambda x=None: self.fail("it ran"))
        with self.assertRaisesRegex(RuntimeError, "no run is open"):
            tool()
        with client.run(permissions=[]):
            with self.assertRaisesRegex(TypeError, "argument x is no JSON"):
                tool(object())
        with self.assertRaisesRegex(RuntimeError, "no run is open"):
            tool()

    def test_a_refusal_is_raised_or_answered(self) -> None:
        _, client = self.serve(refusing(["ask for less"]))
        run = client.run(permissions=[])
        with self.assertRaises(Blocked):
            governed("t", run=run)(lambda: self.fail("it ran"))()
        answer = governed("t", run=run, answer_blocked=True)(lambda: self.fail("it ran"))()
        self.assertRegex(answer, r"^t was not carried out: approval required.* Instead: ask for less\. Request apr_")

    def test_runs_nest_and_threads_have_their_own(self) -> None:
        service, client = self.serve()
        tool = governed("t")(lambda: None)
        problems: List[str] = []

        def elsewhere() -> None:
            try:
                tool()
            except RuntimeError as error:
                problems.append(str(error))

        with client.run(permissions=[], run_id="outer"):
            with client.run(permissions=[], run_id="inner"):
                tool()
                other = threading.Thread(target=elsewhere)
                other.start()
                other.join()
            tool()
        asked = [seen["path"] for seen in service.seen if seen["path"].endswith("/intents")]
        self.assertEqual(asked, ["/v1/runs/inner/intents", "/v1/runs/outer/intents"])
        self.assertEqual(len(problems), 1)


class Blocks(ClientCase):
    def test_a_block_that_ends_well_or_does_not(self) -> None:
        service, client = self.serve()
        run = client.run(permissions=[])
        with run.action("pay", {"id": 7}, "why") as action:
            action.result = {"receipt": 1}
        for error in (ValueError("no"), Uncertain("lost")):
            with self.assertRaises(type(error)):
                with run.action("pay", {"id": 8}, "why"):
                    raise error
        bodies = sent(service, "/outcome")
        self.assertEqual(bodies[0], {"status": "succeeded", "result": {"receipt": 1}})
        self.assertEqual([body["status"] for body in bodies[1:]], ["failed", "uncertain"])

    def test_a_block_that_is_refused_is_not_entered(self) -> None:
        _, client = self.serve(refusing([]))
        with self.assertRaises(Blocked):
            with client.run(permissions=[]).action("pay", {}, "why"):
                self.fail("it ran")

    def test_a_block_whose_end_could_not_be_recorded(self) -> None:
        down: Answer = (503, {"error": "ledger unavailable"})
        _, client = self.serve(lambda m, p, b, h: down if "outcome" in p else ordinary(m, p, b, h))
        with self.assertRaises(OutcomeNotRecorded) as caught:
            with client.run(permissions=[]).action("pay", {}, "why") as action:
                action.result = 5
        self.assertEqual(caught.exception.result, 5)


class Asyncio(ClientCase):
    def script(self, answer: Callable[..., Optional[Answer]] = ordinary) -> Tuple[Service, AsyncClient]:
        service, _ = self.serve(answer)
        return service, AsyncClient(service.url, "secret-key", timeout=5.0)

    def test_calls_blocks_and_functions(self) -> None:
        service, client = self.script()

        @governed("named")
        async def tool(x: int) -> int:
            await asyncio.sleep(0)
            return x

        async def work() -> Any:
            run = await client.run(permissions=["p"])
            first = await run.call("a", {}, "r", lambda: asyncio.sleep(0, result=1))
            second = await run.call("b", {}, "r", lambda: 2)
            async with run.action("c", {}, "r") as action:
                action.result = 3
            async with run:
                both = await asyncio.gather(tool(4), tool(5))
            return [first, second, *both]

        self.assertEqual(asyncio.run(work()), [1, 2, 4, 5])
        self.assertEqual([body["tool"] for body in sent(service, "/intents")], ["a", "b", "c", "named", "named"])
        self.assertEqual({body["status"] for body in sent(service, "/outcome")}, {"succeeded"})

    def test_the_loop_goes_on_while_an_approval_is_awaited(self) -> None:
        decided = threading.Event()

        def answer(m: str, p: str, b: Any, h: Any) -> Optional[Answer]:
            if p.startswith("/v1/approvals/"):
                decided.wait(60)
                return 200, {"status": "approved"}
            if p.endswith("/intents") and not decided.is_set():
                return 200, {"decision": "block", "reasons": [PENDING]}
            return ordinary(m, p, b, h)

        _, client = self.script(answer)

        async def work() -> Any:
            run = await client.run(permissions=[])
            waiting = asyncio.ensure_future(run.call("t", {}, "r", lambda: 1, wait_for_approval=60))
            await asyncio.sleep(0)
            decided.set()
            return await waiting

        self.assertEqual(asyncio.run(work()), 1)

    def test_a_refusal_and_a_timeout(self) -> None:
        service, client = self.script()

        async def slow() -> None:
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)

        async def work() -> None:
            run = await client.run(permissions=[])
            await run.call("t", {}, "r", slow)

        with self.assertRaises(asyncio.TimeoutError):
            asyncio.run(work())
        self.assertEqual(sent(service, "/outcome")[0]["status"], "uncertain")
        _, refused = self.script(refusing([]))

        async def ask() -> None:
            await (await refused.run(permissions=[])).call("t", {}, "r", lambda: self.fail("it ran"))

        with self.assertRaises(Blocked):
            asyncio.run(ask())

    def test_cancelled_while_the_tool_runs_is_uncertain(self) -> None:
        service, client = self.script()

        async def work() -> None:
            run = await client.run(permissions=[])
            running = asyncio.Event()

            async def tool() -> None:
                running.set()
                await asyncio.Event().wait()

            task = asyncio.ensure_future(run.call("t", {}, "r", tool))
            await running.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(work())
        self.assertEqual([body["status"] for body in sent(service, "/outcome")], ["uncertain"])

    def test_cancelled_while_it_asks_leaves_a_step_that_failed(self) -> None:
        asked, go_on, ended = threading.Event(), threading.Event(), threading.Event()

        def answer(m: str, p: str, b: Any, h: Any) -> Optional[Answer]:
            if p.endswith("/intents"):
                asked.set()
                go_on.wait(60)
            if p.endswith("/outcome"):
                ended.set()
            return ordinary(m, p, b, h)

        service, client = self.script(answer)

        async def work() -> None:
            run = await client.run(permissions=[])
            task = asyncio.ensure_future(run.call("t", {}, "r", lambda: self.fail("it ran")))
            while not asked.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            go_on.set()

        asyncio.run(work())
        self.assertTrue(ended.wait(60))
        self.assertEqual(
            sent(service, "/outcome"), [{"status": "failed", "error": "cancelled before the tool ran"}]
        )


class Frameworks(ClientCase):
    """Stand-ins: see above."""

    def standing_in(self, **modules: types.ModuleType) -> None:
        patch = mock.patch.dict(sys.modules, {name.replace("__", "."): module for name, module in modules.items()})
        patch.start()
        self.addCleanup(patch.stop)

    def test_no_framework_is_imported_before_it_is_used(self) -> None:
        import reversi_sdk.crewai
        import reversi_sdk.langchain
        import reversi_sdk.openai_agents

        _, client = self.serve()
        run = client.run(permissions=[])
        for wrapper in (reversi_sdk.crewai, reversi_sdk.langchain, reversi_sdk.openai_agents):
            blocked = {"crewai": None, "crewai.tools": None, "langchain_core": None, "langchain_core.tools": None, "agents": None}
            with mock.patch.dict(sys.modules, blocked):  # type: ignore[arg-type]
                with self.assertRaises(ImportError):
                    wrapper.govern(run, [len])

    def test_langchain(self) -> None:
        from reversi_sdk.langchain import govern

        @dataclasses.dataclass
        class Tool:
            name: str
            description: str
            args_schema: Any
            func: Any
            coroutine: Any = None
            return_direct: bool = False
            tags: Any = None
            metadata: Any = None

            def invoke(self, given: Dict[str, Any]) -> Any:
                return self.func(**given)

            async def ainvoke(self, given: Dict[str, Any]) -> Any:
                return await self.coroutine(**given) if self.coroutine else self.func(**given)

        core, tools = types.ModuleType("langchain_core"), types.ModuleType("langchain_core.tools")
        tools.StructuredTool = Tool  # type: ignore[attr-defined]
        self.standing_in(langchain_core=core, langchain_core__tools=tools)
        service, client = self.serve()
        refund = Tool("refund", "Refunds.", {"type": "object"}, lambda amount: {"paid": amount}, return_direct=True)
        (wrapped,) = govern(client.run(permissions=[]), [refund], names={"refund": "payments.refund"})
        self.assertEqual((wrapped.name, wrapped.description, wrapped.return_direct), ("refund", "Refunds.", True))
        self.assertEqual(wrapped.args_schema, {"type": "object"})
        self.assertEqual(wrapped.invoke({"amount": 4}), {"paid": 4})
        self.assertEqual(asyncio.run(wrapped.ainvoke({"amount": 5})), {"paid": 5})
        asked = [(body["tool"], body["args"]) for body in sent(service, "/intents")]
        self.assertEqual(asked, [("payments.refund", {"amount": 4}), ("payments.refund", {"amount": 5})])
        _, client = self.serve(refusing(["less"]))
        (wrapped,) = govern(client.run(permissions=[]), [dataclasses.replace(refund, func=lambda **_: self.fail("ran"))])
        self.assertIn("was not carried out", wrapped.invoke({"amount": 4}))
        self.assertIn("Instead: less.", asyncio.run(wrapped.ainvoke({"amount": 4})))

    def test_openai_agents(self) -> None:
        from reversi_sdk.openai_agents import govern

        @dataclasses.dataclass
        class FunctionTool:
            name: str
            description: str
            params_json_schema: Dict[str, Any]
            on_invoke_tool: Any

        class RunContextWrapper:
            pass

        def function_tool(fn: Any) -> FunctionTool:
            async def invoke(context: Any, text: str) -> Any:
                return fn(context, **json.loads(text))

            return FunctionTool(fn.__name__, fn.__doc__ or "", {}, invoke)

        agents = types.ModuleType("agents")
        agents.FunctionTool, agents.function_tool = FunctionTool, function_tool  # type: ignore[attr-defined]
        self.standing_in(agents=agents)

        def refund(context: RunContextWrapper, amount: int) -> str:
            "Refunds."
            if amount > 10:
                raise ValueError("too much")
            return f"paid {amount}"

        async def looked(context: Any, text: str) -> str:
            return f"looked {text}"

        service, client = self.serve()
        ready = FunctionTool("lookup", "Looks.", {"type": "object"}, looked)
        of_fn, of_tool = govern(client.run(permissions=[]), [refund, ready])
        self.assertEqual((of_fn.name, of_tool.params_json_schema), ("refund", {"type": "object"}))
        self.assertEqual(asyncio.run(of_fn.on_invoke_tool(None, '{"amount": 4}')), "paid 4")
        with self.assertRaises(ValueError):
            asyncio.run(of_fn.on_invoke_tool(None, '{"amount": 40}'))
        self.assertEqual(asyncio.run(of_tool.on_invoke_tool(None, '{"id": 1}')), 'looked {"id": 1}')
        self.assertIn("no JSON object", asyncio.run(of_tool.on_invoke_tool(None, "{")))
        asked = [(body["tool"], body["args"]) for body in sent(service, "/intents")]
        self.assertEqual(asked, [("refund", {"amount": 4}), ("refund", {"amount": 40}), ("lookup", {"id": 1})])
        self.assertEqual(
            [body["status"] for body in sent(service, "/outcome")], ["succeeded", "failed", "succeeded"]
        )
        _, client = self.serve(refusing(["less"]))
        for tool in govern(client.run(permissions=[]), [refund, ready]):
            self.assertIn("was not carried out", asyncio.run(tool.on_invoke_tool(None, '{"amount": 4}')))

    def test_crewai(self) -> None:
        from reversi_sdk.crewai import govern

        class BaseTool:
            def __init__(self, **fields: Any) -> None:
                self.result_as_answer = False
                self.__dict__.update(fields)
                self.description = f"Tool Name: {self.name}\nTool Arguments: {{}}\nTool Description: {self.description}"

            def run(self, **kwargs: Any) -> Any:
                return self._run(**kwargs)

        class Refund(BaseTool):
            def _run(self, amount: int) -> str:
                return f"paid {amount}"

        crewai, tools = types.ModuleType("crewai"), types.ModuleType("crewai.tools")
        tools.BaseTool = BaseTool  # type: ignore[attr-defined]
        self.standing_in(crewai=crewai, crewai__tools=tools)
        service, client = self.serve()
        refund = Refund(name="refund", description="Refunds.", args_schema=Point)
        run = AsyncRun(client.run(permissions=[]))
        (wrapped,) = govern(run, [refund], reason="crew work")
        self.assertEqual(wrapped.description, refund.description)
        self.assertIs(wrapped.args_schema, Point)
        self.assertFalse(wrapped.cache_function(None, "x"))
        self.assertEqual(wrapped.run(amount=4), "paid 4")
        self.assertEqual(
            sent(service, "/intents"), [{"tool": "refund", "args": {"amount": 4}, "reason": "crew work"}]
        )
        _, client = self.serve(refusing(["less"]))
        self.assertIn("was not carried out", govern(client.run(permissions=[]), [refund])[0].run(amount=4))


if __name__ == "__main__":
    unittest.main()
