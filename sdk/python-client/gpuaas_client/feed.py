"""Live feeds that survive: a subscription that resumes from its last cursor whenever the connection, the server or the
subscription itself ends, and that starts from the beginning when its cursor has expired."""

from __future__ import annotations

import json
import socket
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Generic, Iterator, Mapping, TypeVar

from .errors import PlatformError, error_of, error_of_status
from .request import Subscription

if TYPE_CHECKING:
    from .client import Client

_PING_EVERY = 15.0
_SILENCE = 3 * _PING_EVERY
_CONNECT_SECONDS = 10.0

Data = TypeVar("Data")


class Feed(Generic[Data]):
    """Feed is the items of a subscription: iterate over it, in one thread. close ends it, from any thread."""

    def __init__(self, client: Client, subscription: Subscription[Data], cursor_of: Callable[[Data], str | None] | None,
                 restarted: Callable[[], None] | None, completes: bool, seconds: float | None) -> None:
        self._client, self._subscription, self._cursor_of = client, subscription, cursor_of
        self._restarted, self._completes = restarted, completes
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._closed = threading.Event()
        self._socket: _Socket | None = None
        self._variables, self._failures = dict(subscription.variables), 0

    def __iter__(self) -> Iterator[Data]:
        from .client import backoff  # imported here, because client imports this module
        while not self._closed.is_set():
            try:
                yield from self._attempt()
                if self._completes:
                    return
            except PlatformError as error:
                self._judge(error)
            wait = backoff(self._failures)
            self._failures += 1
            self._closed.wait(wait if self._ends is None else min(wait, self._left()))

    def close(self) -> None:
        """close ends the feed: its reader sees its end."""
        self._closed.set()
        if self._socket is not None:
            self._socket.close()

    def __enter__(self) -> Feed[Data]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _attempt(self) -> Iterator[Data]:
        """_attempt reads one subscription to its end."""
        text = self._client.text(self._subscription.document)
        self._socket = _Socket(self._client, self._left)
        try:
            for data in self._socket.items({"query": text, "variables": self._variables}, self._closed.is_set):
                self._failures = 0
                cursor = self._cursor_of(data) if self._cursor_of else None
                if cursor is not None:
                    self._variables["after"] = cursor
                yield data
        except PlatformError as error:
            if not self._client.falls_back(self._subscription.document, error, text):
                raise
            raise PlatformError("NETWORK", "sent again in the form of an older platform", retryable=True) from error
        finally:
            self._socket.close()

    def _judge(self, error: PlatformError) -> None:
        """_judge raises an error that a retry cannot mend."""
        if self._closed.is_set():
            return
        if error.starts_over:
            self._variables = {**self._subscription.variables}
            self._variables.pop("after", None)
            if self._restarted:
                self._restarted()
        elif error.final:
            raise error

    def _left(self) -> float:
        """_left returns the seconds that remain, at most the time between pings; it raises TimeoutError after them."""
        if self._ends is None:
            return _PING_EVERY
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time limit of the feed has passed")
        return min(left, _PING_EVERY)


class _Socket:
    """_Socket is one subscription over graphql-transport-ws, on a connection of its own."""

    def __init__(self, client: Client, left: Callable[[], float]) -> None:
        try:
            import websocket
        except ImportError as error:
            raise RuntimeError("feeds need the package websocket-client, on Debian python3-websocket") from error
        self._errors: Any = websocket
        self._client, self._left = client, left
        try:
            self._connection = websocket.create_connection(
                client.socket_url(), timeout=min(_CONNECT_SECONDS, left()), subprotocols=["graphql-transport-ws"],
                sslopt=client.ssl_options(), redirect_limit=0, suppress_origin=True)
        except websocket.WebSocketBadStatusException as error:
            refused = error_of_status(error.status_code, "")
            raise refused or PlatformError("NETWORK", str(error), retryable=True) from error
        except (OSError, websocket.WebSocketException) as error:
            left()
            raise PlatformError("NETWORK", f"the platform cannot be reached: {error}", retryable=True) from error
        if self._connection.getstatus() != 101:
            self._connection.close()
            raise PlatformError("NETWORK", f"the platform answers {self._connection.getstatus()}", retryable=True)

    def items(self, payload: Mapping[str, Any], closed: Callable[[], bool]) -> Iterator[Any]:
        """items subscribes and returns the data of each item until the platform completes the subscription."""
        token = self._client.credential()
        self._say({"type": "connection_init", "payload": {"authorization": f"Bearer {token}"} if token else {}})
        received = time.monotonic()
        while not closed():
            message = self._hear()
            if message is None:
                if time.monotonic() - received > _SILENCE:
                    raise PlatformError("NETWORK", "the platform sends nothing", retryable=True)
                self._say({"type": "ping"})
                continue
            received = time.monotonic()
            kind, said = message.get("type"), message.get("payload")
            if kind == "connection_ack":
                self._say({"id": "1", "type": "subscribe", "payload": payload})
            elif kind == "ping":
                self._say({"type": "pong"})
            elif kind == "complete":
                return
            elif kind == "error":
                raise error_of(said[0] if isinstance(said, list) and said else None)
            elif kind == "next" and isinstance(said, dict):
                if errors := said.get("errors"):
                    raise error_of(errors[0] if isinstance(errors, list) else None)
                if said.get("data") is not None:
                    yield said["data"]

    def close(self) -> None:
        """close ends the connection, and wakes a thread that waits on it, which closing alone does not."""
        try:
            if self._connection.sock is not None:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass  # it is closed already
        self._connection.shutdown()

    def _say(self, message: Mapping[str, Any]) -> None:
        try:
            self._connection.send(json.dumps(message))
        except (OSError, self._errors.WebSocketException) as error:
            raise PlatformError("NETWORK", "the live connection was lost", retryable=True) from error

    def _hear(self) -> Mapping[str, Any] | None:
        """_hear returns the next message; None when none arrived in the time between two pings."""
        self._connection.settimeout(self._left())
        try:
            code, raw = self._connection.recv_data()
        except self._errors.WebSocketTimeoutException:
            self._left()
            return None
        except (OSError, self._errors.WebSocketException) as error:
            raise PlatformError("NETWORK", "the live connection was lost", retryable=True) from error
        if code == self._errors.ABNF.OPCODE_CLOSE:
            status = int.from_bytes(raw[:2], "big")
            if status in (4401, 4403):
                raise PlatformError("UNAUTHENTICATED", "the session has ended")
            raise PlatformError("NETWORK", f"the live connection was closed with {status}", retryable=True)
        try:
            message = json.loads(raw)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise PlatformError("NETWORK", "the platform sent an invalid message", retryable=True)
        return message
