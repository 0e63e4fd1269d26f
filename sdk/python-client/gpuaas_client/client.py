"""The client: one call is one request."""

from __future__ import annotations

import http.client
import json
import random
import re
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Mapping, TypeVar

from .errors import PlatformError, error_of, error_of_status
from .feed import Feed
from .operation import OperationHandle
from .request import Document, Mutation, Query, Subscription

_CALL_SECONDS = 45
"""Longer than any wait that the API offers."""
_MAX_RETRY_AFTER = 60
_MAX_ANSWER = 64 << 20

Data = TypeVar("Data")


class Client:
    """Client speaks to the platform at url, such as https://gpu.example.com. token is a session token or a service
    account's key, or what returns one for each request. context is the TLS context for a certificate authority of one's
    own. Many threads may use a Client."""

    def __init__(self, url: str, token: str | Callable[[], str] = "", *, context: ssl.SSLContext | None = None) -> None:
        at = urllib.parse.urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"url is not the platform's address, such as https://gpu.example.com: {url!r}")
        self._at, self._token, self._path = at, token, at.path.rstrip("/") + "/graphql"
        self._context = context or (ssl.create_default_context() if at.scheme == "https" else None)
        self._lock, self._older = threading.Lock(), set[str]()

    def request(self, request: Query[Data] | Mutation[Data], *, correlation_id: str = "") -> Data:
        """request sends one request and returns its data, or raises a PlatformError. It repeats nothing; see repeat. Only
        where the platform is of version 1 of the API and does not know a newer field is the request sent again without it:
        a document that it refuses did nothing."""
        answer: Data = self._known(request.document, lambda text: self._send(text, request.variables, correlation_id))
        return answer

    def repeat(self, request: Query[Data] | Mutation[Data], *, attempts: int = 5) -> Data:
        """repeat sends a request until it succeeds, is refused for good, or has been sent as often as the limit. A
        mutation keeps its idempotency key, so each try is the same submission."""
        for attempt in range(attempts):
            try:
                return self.request(request)
            except PlatformError as error:
                if not error.retryable or attempt + 1 >= attempts:
                    raise
                time.sleep(max(backoff(attempt), error.retry_after))
        raise ValueError("attempts is less than 1")

    def operation(self, id: str) -> OperationHandle:
        """operation returns the handle of an operation by its id, also of an operation that another program began."""
        return OperationHandle(self, id)

    def subscribe(self, subscription: Subscription[Data], *, cursor_of: Callable[[Data], str | None] | None = None,
                  restarted: Callable[[], None] | None = None, completes: bool = False,
                  seconds: float | None = None) -> Feed[Data]:
        """subscribe reads a feed: for item in client.subscribe(...). It survives connections and servers: it goes on
        behind the cursor of the last item, that cursor_of returns; a feed without one starts from the beginning after
        each interruption. restarted is called where the cursor has expired: the feed begins again, and what was read
        must be discarded. completes states that an orderly completion is the end, as of an operation; else the feed is
        resumed. After seconds, if given, it raises TimeoutError. It raises a PlatformError that a retry cannot mend."""
        return Feed(self, subscription, cursor_of, restarted, completes, seconds)

    # What follows is for the modules of this package.

    def socket_url(self) -> str:
        """socket_url is where subscriptions are read."""
        return f"ws{self._at.scheme.removeprefix('http')}://{self._at.netloc.rpartition('@')[2]}{self._path}"

    def ssl_options(self) -> dict[str, Any]:
        """ssl_options returns the TLS options of a socket."""
        return {"context": self._context} if self._context else {}

    def credential(self) -> str:
        """credential returns the current token; empty without one."""
        return self._token() if callable(self._token) else self._token

    def text(self, document: Document) -> str:
        """text returns the document in the form that the platform knows."""
        with self._lock:
            return document.older if document.older is not None and document.name in self._older else document.text

    def falls_back(self, document: Document, error: PlatformError, text: str) -> bool:
        """falls_back notes that the platform refused the text of a document as unknown, and reports whether there is an
        older one to send instead."""
        if error.code != "DOCUMENT_INVALID" or document.older is None or text == document.older:
            return False
        with self._lock:
            self._older.add(document.name)
        return True

    def _known(self, document: Document, send: Callable[[str], Any]) -> Any:
        text = self.text(document)
        try:
            return send(text)
        except PlatformError as error:
            if not self.falls_back(document, error, text):
                raise
        return send(self.text(document))

    def _send(self, text: str, variables: Mapping[str, Any], correlation_id: str) -> Any:
        headers = {"Content-Type": "application/json", "User-Agent": "gpuaas-client-python"}
        if token := self.credential():
            headers["Authorization"] = f"Bearer {token}"
        if correlation_id:
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", correlation_id):
                raise ValueError("correlation_id must be at most 64 of A-Z a-z 0-9 . _ -")
            headers["X-Correlation-ID"] = correlation_id
        status, fields, raw = self._post(json.dumps({"query": text, "variables": variables}).encode(), headers)
        wait = _seconds(fields.get("Retry-After"))
        try:
            envelope = json.loads(raw)
        except ValueError:
            envelope = None  # something between here and the platform has responded: the status is the evidence
        envelope = envelope if isinstance(envelope, dict) else {}
        errors = envelope.get("errors")
        if isinstance(errors, list) and errors:
            raise error_of(errors[0], wait)
        correlation = fields.get("X-Correlation-ID") or ""
        if refused := error_of_status(status, correlation, wait):
            raise refused
        if envelope.get("data") is None:
            raise PlatformError("INTERNAL", "the platform returned no data", correlation_id=correlation)
        return envelope["data"]

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection: http.client.HTTPConnection
        host, port = self._at.hostname or "", self._at.port
        if self._context:
            connection = http.client.HTTPSConnection(host, port, timeout=_CALL_SECONDS, context=self._context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=_CALL_SECONDS)
        try:
            connection.request("POST", self._path, body, headers)  # http.client follows no redirect
            answer = connection.getresponse()
            raw = answer.read(_MAX_ANSWER + 1)
            if len(raw) > _MAX_ANSWER:
                raise PlatformError("DOCUMENT_TOO_LARGE", f"the answer is longer than {_MAX_ANSWER} bytes: ask for less")
            return answer.status, answer.headers, raw
        except (OSError, http.client.HTTPException) as error:
            raise PlatformError("NETWORK", f"the platform cannot be reached: {error}", retryable=True) from error
        finally:
            connection.close()


def backoff(attempt: int) -> float:
    """backoff returns the seconds before attempt n, from 0: doubling from 0.3 to at most 10, each plus up to a half."""
    return float(min(10, 0.3 * 2 ** min(attempt, 10)) * (1 + random.random() / 2))


def _seconds(value: str | None) -> float:
    """_seconds reads a Retry-After of seconds; never more than a minute."""
    try:
        return min(max(float(value or 0), 0), _MAX_RETRY_AFTER)
    except ValueError:
        return 0
