"""LangChain and LangGraph tools under governance.

    from reversi_sdk.langchain import govern
    tools = govern(run, [search, refund])

Each tool keeps its name, description and schema; its code does not change. A refusal is a text that the model reads.
The framework is imported when tools are wrapped, never before.
"""

from __future__ import annotations

from typing import Any

from .govern import Govern, Governor


def _wrapped(governor: Governor, tool: Any) -> Any:
    from langchain_core.tools import StructuredTool

    def func(**kwargs: Any) -> Any:
        return governor.call(tool.name, kwargs, lambda: tool.invoke(kwargs))

    async def coroutine(**kwargs: Any) -> Any:
        return await governor.acall(tool.name, kwargs, lambda: tool.ainvoke(kwargs))

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema if tool.args_schema is not None else tool.get_input_schema(),
        func=func,
        coroutine=coroutine,
        return_direct=tool.return_direct,
        tags=tool.tags,
        metadata=tool.metadata,
    )


govern = Govern(_wrapped)
