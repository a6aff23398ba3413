"""One HTTP request to the service, and when it may be sent again.

A request is repeated only where that is known to be safe: it is a read, or it carries an idempotency key, or
the service said that nothing of it stayed behind (503). Redirects are refused, since following one would
hand the key to another host.
"""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from typing import Any, Callable, Dict, Optional
from urllib.parse import urlsplit

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_BUSY = (429, 502, 503, 504)


class ServiceError(Exception):
    """The service refused a request, or could not be reached. `status` is 0 where there was no answer."""

    def __init__(self, status: int, message: str, retry_after: float = 0) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Transport:
    def __init__(self, url: str, key: str, timeout: float, attempts: int, sleep: Callable[[float], None]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{url!r} is not an http or https address")
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("the key is empty or holds characters that no key has")
        self._base = url.rstrip("/")
        self._key = key
        self._timeout = timeout
        self._attempts = max(1, attempts)
        self._sleep = sleep
        self._opener = urllib.request.build_opener(_NoRedirects())

    def request(
        self,
        method: str,
        path: str,
        body: Optional[Dict[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """The answer's JSON. Raises ServiceError for everything but a 2xx."""
        repeatable = method == "GET" or idempotency_key is not None
        data = None if body is None else encode_body(body)
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(method, path, data, idempotency_key, timeout or self._timeout)
            except ServiceError as error:
                safe = error.status == 503 or (repeatable and (error.status == 0 or error.status in _BUSY))
                if not safe or attempt >= self._attempts:
                    raise
                told = error.retry_after
            # Half to one and a half of 0.2 s, 0.4 s, ...: clients that failed together do not return together.
            self._sleep(told + 0.2 * 2 ** (attempt - 1) * (0.5 + random.random()))

    def _once(self, method: str, path: str, data: Optional[bytes], key: Optional[str], timeout: float) -> Any:
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(self._base + path, data=data, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=timeout) as response:
                return _read_json(response)
        except urllib.error.HTTPError as error:
            with error:
                raise ServiceError(error.code, _error_message(error), _retry_after(error)) from None
        except (urllib.error.URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise ServiceError(0, f"no answer from {self._base}: {reason}") from None


def encode_body(body: Any) -> bytes:
    """JSON that a strict reader accepts: no NaN, UTF-8. Raises TypeError or ValueError for what is not JSON."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def _read_json(response: HTTPResponse) -> Any:
    data = response.read(MAX_ANSWER_BYTES + 1)
    if len(data) > MAX_ANSWER_BYTES:
        raise ServiceError(response.status, "the answer is too large")
    try:
        return json.loads(data) if data else None
    except ValueError:
        raise ServiceError(response.status, "the answer is not JSON: is this address the service?") from None


def _retry_after(error: urllib.error.HTTPError) -> float:
    """In seconds, a minute at most; a date is not heeded, and whoever comes too early is told again."""
    told = error.headers.get("Retry-After", "")
    return min(float(told), 60.0) if told.isdecimal() and told.isascii() else 0


def _error_message(error: urllib.error.HTTPError) -> str:
    try:
        message = json.loads(error.read(64 * 1024))["error"]
        return message if isinstance(message, str) else str(message)
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return error.reason or "refused"
