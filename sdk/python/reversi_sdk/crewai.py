"""CrewAI tools under governance.

    from reversi_sdk.crewai import govern
    agent = Agent(role="support", tools=govern(run, [refund_tool]))

Each tool keeps its name, description and schema; its code does not change. A refusal is a text that the model reads.
The framework is imported when tools are wrapped, never before.
"""

from __future__ import annotations

from typing import Any

from .govern import Govern, Governor

# The framework writes name and arguments in front of a description, and would do it again.
_MARK = "Tool Description: "


def _wrapped(governor: Governor, tool: Any) -> Any:
    from crewai.tools import BaseTool

    class Governed(BaseTool):  # type: ignore[misc, valid-type]
        def _run(self, **kwargs: Any) -> Any:
            return governor.call(tool.name, kwargs, lambda: tool.run(**kwargs))

    return Governed(
        name=tool.name,
        description=tool.description.rsplit(_MARK, 1)[-1],
        args_schema=tool.args_schema,
        result_as_answer=tool.result_as_answer,
        # A remembered answer would be a call that was never judged, or a refusal that outlives its approval.
        cache_function=lambda *_: False,
    )


govern = Govern(_wrapped)
