"""What the service keeps exactly. It refuses a whole report for one value that it cannot, so that is found out here."""

from __future__ import annotations

from typing import Any, List

from .errors import Invalid
from .strictjson import VALUES, parse
from .transport import encode_body

# The service reads 64 levels, and a value stands one level deep in what is told.
_LEVELS = 63


def exact_size(value: Any) -> int:
    """How many bytes the value takes. Raises for what is no JSON, and for what JSON's readers understand in two ways."""
    data = encode_body(value)
    nested = _containers([parse(data.decode("utf-8"), VALUES)])
    for _ in range(_LEVELS):
        nested = [inner for outer in nested for inner in _containers(outer)]
    if nested:
        raise Invalid(f"nesting is deeper than {_LEVELS} levels")
    return len(data)


def _containers(of: Any) -> List[Any]:
    values = of.values() if isinstance(of, dict) else of
    return [value for value in values if isinstance(value, (dict, list))]


def told(error: str) -> str:
    """An error as it is told: cut, and with halves of characters replaced."""
    return error[:2000].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
