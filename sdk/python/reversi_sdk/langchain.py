"""LangChain and LangGraph tools under governance.

    from reversi_sdk.langchain import govern
    tools = govern(run, [search, refund])

Takes tools, and functions, which become tools. Each stays what it is (name, description, schema, artifact, handling of
errors); only what it does when it is called is asked for first. A refusal is a text that the model reads. What the
framework injects (a call's id, the graph's state, a configuration) is no part of what is asked for.
The framework is imported when tools are wrapped, never before.
"""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any, Dict, FrozenSet, Iterable, Tuple

from .govern import Govern, Governor


def _wrapped(governor: Governor, given: Any) -> Any:
    from langchain_core.tools import BaseTool
    from langchain_core.tools import tool as as_tool

    tool = given if isinstance(given, BaseTool) else as_tool(given)
    kind: Any = type(tool)
    injected = _injected(tool)

    def asked(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        named = {name: value for name, value in kwargs.items() if name not in injected}
        return {"tool_input": args[0], **named} if args else named

    def refused(text: str) -> Any:
        return (text, None) if getattr(tool, "response_format", "") == "content_and_artifact" else text

    # The framework looks at the signatures for what to hand over.
    arun = kind._run if kind._arun is BaseTool._arun else kind._arun

    class Governed(kind):  # type: ignore[misc, valid-type]
        @functools.wraps(kind._run)
        def _run(self, *args: Any, **kwargs: Any) -> Any:
            return governor.call(tool.name, asked(args, kwargs), lambda: tool._run(*args, **kwargs), refused)

        @functools.wraps(arun)
        async def _arun(self, *args: Any, **kwargs: Any) -> Any:
            return await governor.acall(tool.name, asked(args, kwargs), lambda: tool._arun(*args, **kwargs), refused)

    governed = copy.copy(tool)
    object.__setattr__(governed, "__class__", Governed)
    return governed


govern = Govern(_wrapped)


def _injected(tool: Any) -> FrozenSet[str]:
    """The parameters that the framework fills in, so that the model does not see them."""
    whole = tool.args_schema if tool.args_schema is not None else tool.get_input_schema()
    names = set(_fields(whole)) - set(_fields(tool.tool_call_schema))
    names.update(getattr(tool, "_injected_args_keys", ()))
    for method in (type(tool)._run, type(tool)._arun):
        for name, parameter in inspect.signature(method).parameters.items():
            if name == "run_manager" or "RunnableConfig" in str(parameter.annotation):
                names.add(name)
    return frozenset(names)


def _fields(schema: Any) -> Iterable[str]:
    if isinstance(schema, dict):
        return schema.get("properties", {})
    return getattr(schema, "model_fields", None) or getattr(schema, "__fields__", {})
