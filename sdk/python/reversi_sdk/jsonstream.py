"""Reading one large JSON object member by member, so that a bundle larger than memory can be checked.

Values are decoded by the strict decoder; only the objects and arrays that a caller asks to walk are walked
here. Whitespace, commas and colons are therefore the only syntax this file knows.
"""

from __future__ import annotations

import codecs
import json
from typing import Any, BinaryIO, Iterator

from .errors import Invalid, show
from .files import MAX_LINE_BYTES
from .strictjson import DECODER

_CHUNK = 256 * 1024
_SPACE = " \t\n\r"


class JsonStream:
    """A window over the text of a file: refilled at its end, cut at its start when it is refilled."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._decode = codecs.getincrementaldecoder("utf-8")("strict").decode
        self._window = ""
        self._at = 0
        self._ended = False
        if self._peek() == "\ufeff":
            raise Invalid("begins with a byte-order mark")

    def is_empty(self) -> bool:
        return self._peek() == ""

    def document(self) -> Iterator[str]:
        """The keys of the object that is the whole file; nothing may follow it."""
        yield from self.members()
        if self._peek():
            raise Invalid("there is more after the end of the JSON")

    def members(self) -> Iterator[str]:
        """The keys of an object. The caller takes the value of each before it asks for the next."""
        self._expect("{")
        seen = set()
        more = not self._skip_if("}")
        while more:
            if self._peek() != '"':
                self._fail("a key was due")
            key = self.value()
            if key in seen:
                raise Invalid(f"the key {show(key)!r} appears twice")
            seen.add(key)
            self._expect(":")
            yield key
            more = self._skip_if(",")
            if not more:
                self._expect("}")

    def elements(self) -> Iterator[Any]:
        """The values of an array, one at a time."""
        self._expect("[")
        more = not self._skip_if("]")
        while more:
            yield self.value()
            more = self._skip_if(",")
            if not more:
                self._expect("]")

    def value(self) -> Any:
        """One whole value. One that ends where the window ends may go on beyond it, so it is read again."""
        self._peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self._window, self._at)
                if end < len(self._window) or self._ended:
                    self._at = end
                    return value
            except json.JSONDecodeError as error:
                if self._ended:
                    raise Invalid(f"not JSON ({error.msg})") from None
            except RecursionError:
                raise Invalid("nested too deeply") from None
            self._window, self._at = self._window[self._at :], 0
            if len(self._window) > MAX_LINE_BYTES:
                raise Invalid("not JSON, or holds a value larger than any record can be")
            # Doubling keeps the work of reading a long value again in proportion to its length.
            self._fill(max(_CHUNK, len(self._window)))

    def _fill(self, size: int) -> None:
        data = self._source.read(size)
        try:
            self._window += self._decode(data, not data)
        except UnicodeDecodeError:
            raise Invalid("not UTF-8") from None
        self._ended = not data

    def _peek(self) -> str:
        """The next character that is not whitespace, or nothing at the end of the file."""
        while True:
            while self._at < len(self._window):
                if self._window[self._at] not in _SPACE:
                    return self._window[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._window, self._at = "", 0
            self._fill(_CHUNK)

    def _skip_if(self, wanted: str) -> bool:
        if self._peek() != wanted:
            return False
        self._at += 1
        return True

    def _expect(self, wanted: str) -> None:
        if not self._skip_if(wanted):
            self._fail(f"{wanted!r} was due")

    def _fail(self, problem: str) -> None:
        raise Invalid(f"cannot be read: {problem}{'' if self._peek() else ', but the file ends'}")
