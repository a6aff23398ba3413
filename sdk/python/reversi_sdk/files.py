"""Opening what a person named on the command line, and reading it in bounded pieces.

Only regular files (and standard input, as `-`) are read: a pipe or a device would hang or never end.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import BinaryIO, Iterator, Tuple

from .errors import InputError, Invalid

# A record holds at most what fits in a 1 MB request; escapes can make it larger, but not by this much.
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_KEY_BYTES = 64 * 1024


def open_input(path: str) -> BinaryIO:
    if path == "-":
        return sys.stdin.buffer
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder, not a file")
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        # Non-blocking, because opening a FIFO without a writer would wait for ever.
        descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read: {reason}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb", buffering=1024 * 1024)


def read_small(path: str) -> bytes:
    """A file that is small by nature, such as a key."""
    with open_input(path) as source:
        data = source.read(MAX_KEY_BYTES + 1)
    if len(data) > MAX_KEY_BYTES:
        raise InputError(f"{path} is too large to be a key")
    return data


def lines(source: BinaryIO) -> Iterator[Tuple[int, bytes, bool]]:
    """Each line as (number from 1, bytes without the line end, whether it had one)."""
    number = 0
    while True:
        line = source.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        number += 1
        ended = line.endswith(b"\n")
        if not ended and len(line) > MAX_LINE_BYTES:
            raise Invalid("is longer than any record can be", f"line {number}")
        yield number, line[:-1] if ended else line, ended
