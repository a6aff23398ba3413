"""The decorator, the context managers, asyncio and the wrappers of frameworks.

Where LangChain, the OpenAI Agents SDK or CrewAI can be imported, their wrappers are tested with them. Elsewhere stand-ins
with the parts of their interfaces that the wrappers use are put in their places.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import importlib
import json
import sys
import threading
import types
import unittest
from typing import Annotated, Any, Callable, Dict, List, Optional, Tuple
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

    def langchain(self) -> Any:
        try:
            return importlib.import_module("langchain_core.tools")
        except ImportError:
            pass

        class BaseTool:
            response_format = "content"
            args_schema: Any = None

            def __init__(self, fn: Any) -> None:
                self.fn, self.name, self.description = fn, fn.__name__, fn.__doc__
                self.tool_call_schema = {"properties": {"amount": {}}}

            def get_input_schema(self) -> Any:
                return {"properties": {"amount": {}, "call_id": {}}}

            def _run(self, **given: Any) -> Any:
                return self.fn(**given)

            async def _arun(self, **given: Any) -> Any:
                return self._run(**given)

            def invoke(self, given: Dict[str, Any]) -> Any:
                args = dict(given["args"], call_id=given["id"])
                return types.SimpleNamespace(content=json.dumps(self._run(**args)))

            async def ainvoke(self, given: Dict[str, Any]) -> Any:
                return types.SimpleNamespace(content=json.dumps(await self._arun(**given["args"], call_id=given["id"])))

        core, tools = types.ModuleType("langchain_core"), types.ModuleType("langchain_core.tools")
        tools.BaseTool = tools.tool = BaseTool  # type: ignore[attr-defined]
        tools.InjectedToolCallId = object  # type: ignore[attr-defined]
        self.standing_in(langchain_core=core, langchain_core__tools=tools)
        return tools

    def test_langchain(self) -> None:
        from reversi_sdk.langchain import govern

        lib = self.langchain()

        def refund(amount: int, call_id: str) -> Dict[str, Any]:
            "Refunds."
            if amount > 10:
                raise ValueError("too much")
            return {"paid": amount, "call": call_id}

        refund.__annotations__ = {"amount": int, "call_id": Annotated[str, lib.InjectedToolCallId], "return": dict}

        def call(amount: int) -> Dict[str, Any]:
            return {"type": "tool_call", "id": "c1", "name": "refund", "args": {"amount": amount}}

        service, client = self.serve()
        for given in (refund, lib.tool(refund)):
            (wrapped,) = govern(client.run(permissions=[]), [given], names={"refund": "payments.refund"})
            self.assertIsInstance(wrapped, lib.BaseTool)
            self.assertEqual((wrapped.name, wrapped.description), ("refund", "Refunds."))
            self.assertEqual(json.loads(wrapped.invoke(call(4)).content), {"paid": 4, "call": "c1"})
            self.assertEqual(json.loads(asyncio.run(wrapped.ainvoke(call(5))).content), {"paid": 5, "call": "c1"})
            with self.assertRaises(ValueError):
                wrapped.invoke(call(40))
        # What the framework injects is no part of what a person would judge.
        asked = [(body["tool"], body["args"]) for body in sent(service, "/intents")]
        self.assertEqual(asked, [("payments.refund", {"amount": amount}) for amount in (4, 5, 40)] * 2)
        ends = [body["status"] for body in sent(service, "/outcome")]
        self.assertEqual(ends, ["succeeded", "succeeded", "failed"] * 2)
        _, client = self.serve(refusing(["less"]))
        (wrapped,) = govern(client.run(permissions=[]), [refund])
        self.assertIn("was not carried out", wrapped.invoke(call(4)).content)
        self.assertIn("Instead: less.", asyncio.run(wrapped.ainvoke(call(4))).content)

    def openai_agents(self) -> Any:
        try:
            return importlib.import_module("agents")
        except ImportError:
            pass

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
                try:
                    return fn(context, **json.loads(text))
                except ValueError as error:
                    return f"An error occurred: {error}"

            return FunctionTool(fn.__name__, fn.__doc__ or "", {}, invoke)

        agents = types.ModuleType("agents")
        agents.FunctionTool, agents.function_tool = FunctionTool, function_tool  # type: ignore[attr-defined]
        agents.RunContextWrapper = RunContextWrapper  # type: ignore[attr-defined]
        self.standing_in(agents=agents)
        return agents

    def invoked(self, tool: Any, text: str) -> Any:
        try:
            from agents.tool_context import ToolContext

            context: Any = ToolContext(context=None, tool_name=tool.name, tool_call_id="c1", tool_arguments=text)
        except ImportError:
            context = None
        return asyncio.run(tool.on_invoke_tool(context, text))

    def test_openai_agents(self) -> None:
        from reversi_sdk.openai_agents import govern

        lib = self.openai_agents()
        real = hasattr(lib, "Agent")

        def refund(context: Any, amount: int) -> str:
            "Refunds."
            if amount > 10:
                raise ValueError("too much")
            return f"paid {amount}"

        refund.__annotations__["context"] = lib.RunContextWrapper

        async def looked(context: Any, text: str) -> str:
            return f"looked {text}"

        service, client = self.serve()
        ready = lib.FunctionTool("lookup", "Looks.", {"type": "object", "properties": {}}, looked)
        of_fn, of_tool, of_ready_fn = govern(client.run(permissions=[]), [refund, ready, lib.function_tool(refund)])
        self.assertEqual((of_fn.name, of_tool.params_json_schema["type"]), ("refund", "object"))
        self.assertEqual(self.invoked(of_fn, '{"amount": 4}'), "paid 4")
        self.assertIn("too much", self.invoked(of_fn, '{"amount": 40}'))
        self.assertEqual(self.invoked(of_tool, '{"id": 1}'), 'looked {"id": 1}')
        self.assertIn("no JSON object", self.invoked(of_tool, "{"))
        self.assertIn("too much", self.invoked(of_ready_fn, '{"amount": 41}'))
        asked = [(body["tool"], body["args"]) for body in sent(service, "/intents")]
        amounts = [("refund", {"amount": amount}) for amount in (4, 40, 41)]
        self.assertEqual(asked, [*amounts[:2], ("lookup", {"id": 1}), amounts[2]])
        ends = [body["status"] for body in sent(service, "/outcome")]
        # A ready tool hides what its function raised, unless the framework lets its handling be taken off.
        self.assertEqual(ends, ["succeeded", "failed", "succeeded", "failed" if real else "succeeded"])
        _, client = self.serve(refusing(["less"]))
        for tool in govern(client.run(permissions=[]), [refund, ready]):
            self.assertIn("was not carried out", self.invoked(tool, '{"amount": 4}'))

    def crewai(self) -> Any:
        try:
            return importlib.import_module("crewai.tools")
        except ImportError:
            pass

        class ToolFailure:
            def __init__(self, message: str) -> None:
                self.message = message

        class BaseTool:
            result_as_answer, max_usage_count, args_schema = False, None, None

            def __init__(self, **fields: Any) -> None:
                self.__dict__.update(fields)
                self.description = f"Tool Name: {self.name}\nTool Arguments: {{}}\nTool Description: {self.description}"

            def run(self, **kwargs: Any) -> Any:
                return self._run(**kwargs)

            async def arun(self, **kwargs: Any) -> Any:
                return await self._arun(**kwargs)

        crewai, tools = types.ModuleType("crewai"), types.ModuleType("crewai.tools")
        tools.BaseTool, tools.ToolFailure = BaseTool, ToolFailure  # type: ignore[attr-defined]
        self.standing_in(crewai=crewai, crewai__tools=tools)
        return tools

    def test_crewai(self) -> None:
        from reversi_sdk.crewai import govern

        lib = self.crewai()

        class Refund(lib.BaseTool):  # type: ignore[misc]
            def _run(self, amount: int) -> Any:
                return lib.ToolFailure(message="too much") if amount > 10 else f"paid {amount}"

            async def _arun(self, amount: int) -> Any:
                return self._run(amount)

        service, client = self.serve()
        refund = Refund(name="refund", description="Refunds.", max_usage_count=3)
        run = AsyncRun(client.run(permissions=[]))
        (wrapped,) = govern(run, [refund], reason="crew work")
        self.assertEqual((wrapped.description, wrapped.max_usage_count), (refund.description, 3))
        self.assertIs(wrapped.args_schema, refund.args_schema)
        self.assertFalse(wrapped.cache_function(None, "x"))
        self.assertEqual(wrapped.run(amount=4), "paid 4")
        self.assertEqual(asyncio.run(wrapped.arun(amount=5)), "paid 5")
        self.assertEqual(wrapped.run(amount=40).message, "too much")
        asked = sent(service, "/intents")
        self.assertEqual(asked[0], {"tool": "refund", "args": {"amount": 4}, "reason": "crew work"})
        self.assertEqual([body["args"]["amount"] for body in asked], [4, 5, 40])
        ends = sent(service, "/outcome")
        self.assertEqual([body["status"] for body in ends], ["succeeded", "succeeded", "failed"])
        self.assertEqual(ends[2]["error"], "ToolFailed: too much")
        _, client = self.serve(refusing(["less"]))
        (wrapped,) = govern(client.run(permissions=[]), [Refund(name="refund", description="Refunds.")])
        self.assertIn("was not carried out", wrapped.run(amount=4))
        self.assertIn("was not carried out", asyncio.run(wrapped.arun(amount=4)))


if __name__ == "__main__":
    unittest.main()
