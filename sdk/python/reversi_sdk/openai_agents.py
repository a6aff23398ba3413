"""Tools of the OpenAI Agents SDK under governance.

    from reversi_sdk.openai_agents import govern
    agent = Agent(name="support", tools=govern(run, [refund, lookup]))

Takes plain functions, which become function tools, and function tools that are there already. What a function raises has
failed, whatever the framework then tells the model.
The framework is imported when tools are wrapped, never before.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import Any, List, Tuple

from .decorate import governed
from .govern import Govern, Governor

# The framework fills in such a first parameter itself; it is no part of the call.
_CONTEXTS = ("RunContextWrapper", "ToolContext")


def _wrapped(governor: Governor, tool: Any) -> Any:
    from agents import FunctionTool, function_tool

    if isinstance(tool, FunctionTool):
        return _of_tool(governor, tool)
    decorate = governed(
        governor.name_of(tool.__name__),
        reason=governor.reason,
        run=governor.run,
        without=_context_of(tool),
        wait_for_approval=governor.wait_for_approval,
        answer_blocked=True,
    )
    return function_tool(decorate(tool))


govern = Govern(_wrapped)


def _of_tool(governor: Governor, tool: Any) -> Any:
    async def on_invoke_tool(context: Any, text: str) -> Any:
        try:
            args = json.loads(text or "{}")
        except ValueError:
            args = None
        if not isinstance(args, dict):
            return f"{tool.name} was not carried out: its arguments are no JSON object."
        try:
            return await governor.acall(tool.name, args, lambda: raising.on_invoke_tool(context, text))
        except Exception as error:
            answer = await explained(function_tool=tool, context=context, error=error) if explained else None
            if answer is None:
                raise
            return answer

    raising, explained = _raising(tool)
    return dataclasses.replace(tool, on_invoke_tool=on_invoke_tool)


def _raising(tool: Any) -> Tuple[Any, Any]:
    """The tool without its own handling of errors, and that handling; as it is where the framework has no such parts."""
    try:
        from agents.tool import maybe_invoke_function_tool_failure_error_function as explained
        from agents.tool import set_function_tool_failure_error_function as explain_with
    except ImportError:
        return tool, None
    raising = dataclasses.replace(tool)
    explain_with(raising, None)
    return raising, explained


def _context_of(fn: Any) -> List[str]:
    first = next(iter(inspect.signature(fn).parameters.values()), None)
    annotation = "" if first is None else str(first.annotation)
    return [first.name] if first is not None and any(word in annotation for word in _CONTEXTS) else []
