"""CrewAI tools under governance.

    from reversi_sdk.crewai import govern
    agent = Agent(role="support", tools=govern(run, [refund_tool]))

Each tool keeps its name, description, schema and limits; its code does not change. A refusal is a text that the model
reads. A `ToolFailure` that a tool answers with is a failed step.
The framework is imported when tools are wrapped, never before.
"""

from __future__ import annotations

from typing import Any

from .govern import Govern, Governor

# Older versions write name and arguments in front of a description, and would do it again.
_MARK = "Tool Description: "
# What older versions do not have.
_NEWER = ("result_schema", "max_usage_count", "tool_failure_policy", "env_vars")


class ToolFailed(Exception):
    """A failure that the tool answered with in place of raising it."""

    def __init__(self, answer: Any) -> None:
        super().__init__(getattr(answer, "message", answer))
        self.answer = answer


def _unless_failed(answer: Any) -> Any:
    if type(answer).__name__ == "ToolFailure":
        raise ToolFailed(answer)
    return answer


def never_cached(_args: Any = None, _result: Any = None) -> bool:
    """A remembered answer would be a call that was never judged, or a refusal that outlives its approval."""
    return False


def _wrapped(governor: Governor, tool: Any) -> Any:
    from crewai.tools import BaseTool

    class Governed(BaseTool):  # type: ignore[misc, valid-type]
        def _run(self, **kwargs: Any) -> Any:
            try:
                return governor.call(tool.name, kwargs, lambda: _unless_failed(tool.run(**kwargs)))
            except ToolFailed as failed:
                return failed.answer

        async def _arun(self, **kwargs: Any) -> Any:
            async def made() -> Any:
                return _unless_failed(await tool.arun(**kwargs))

            try:
                return await governor.acall(tool.name, kwargs, made)
            except ToolFailed as failed:
                return failed.answer

    return Governed(
        name=tool.name,
        description=tool.description.rsplit(_MARK, 1)[-1],
        args_schema=tool.args_schema,
        result_as_answer=tool.result_as_answer,
        cache_function=never_cached,
        **{name: getattr(tool, name) for name in _NEWER if hasattr(tool, name)},
    )


govern = Govern(_wrapped)
