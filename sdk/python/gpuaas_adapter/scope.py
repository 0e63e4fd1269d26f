"""Scopes: what ends a piece of work early. Every wait and every call of the kit is made in the scope of its thread.

A scope ends at its time, with its parent, or when a caller ends it. Every wait in it then raises its reason:
TimeoutError for its own time, and Interrupted when the operation is canceled, exceeds its deadline, is dispatched again
with force, or when the adapter stops. Interrupted is not an Exception, so that a careless "except Exception" does not
go on with work that is no longer wanted.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from typing import Callable, Iterator, Literal

Why = Literal["canceled", "deadline", "stopping", "forced"]


class Interrupted(BaseException):
    """Interrupted is why an operation's work was cut off."""

    def __init__(self, why: Why) -> None:
        super().__init__(f"the operation was interrupted: {why}")
        self.why: Why = why


class Scope:
    """Scope is a span of work that can be ended from another thread."""

    def __init__(self, parent: Scope | None = None, seconds: float | None = None) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._timer: threading.Timer | None = None
        self.reason: BaseException | None = None
        self._unhook: Callable[[], None] = lambda: None
        if parent is not None:
            above = parent
            self._unhook = above.on_end(lambda: self.end(above.reason or Interrupted("stopping")))
        if seconds is not None:
            self.end_at(time.time() + seconds, TimeoutError(f"it did not end within {seconds:g} seconds"))

    @property
    def ended(self) -> bool:
        """ended reports whether the scope has ended."""
        return self._ended.is_set()

    def end(self, reason: BaseException) -> None:
        """end ends the scope, once: the first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            callbacks, self._callbacks = list(self._callbacks.values()), {}
            self._ended.set()
        for callback in callbacks:
            callback()

    def end_at(self, when: float, reason: BaseException) -> None:
        """end_at ends the scope at a time, given in seconds since 1970, in place of a time that was given before."""
        left = when - time.time()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if left > 0 and self.reason is None:
                self._timer = threading.Timer(min(left, threading.TIMEOUT_MAX), self.end, (reason,))
                self._timer.daemon = True
                self._timer.start()
        if left <= 0:
            self.end(reason)

    def on_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """on_end calls back when the scope ends, at once when it has ended, and returns what removes the callback."""
        key = object()
        with self._lock:
            if self.reason is None:
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def check(self) -> None:
        """check raises the reason of a scope that has ended, each time as a new exception."""
        reason = self.reason
        if isinstance(reason, Interrupted):
            raise Interrupted(reason.why)
        if isinstance(reason, TimeoutError):
            raise TimeoutError(*reason.args)
        if reason is not None:
            raise reason

    def pause(self, seconds: float) -> None:
        """pause waits, and raises when the scope ends meanwhile."""
        if self._ended.wait(seconds):
            self.check()

    def close(self) -> None:
        """close frees the scope's timer and detaches it from its parent."""
        self._unhook()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()


_current: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("gpuaas_scope", default=None)


def current() -> Scope:
    """current returns the scope of this thread; outside of any, one that never ends."""
    return _current.get() or Scope()


@contextlib.contextmanager
def using(scope: Scope) -> Iterator[Scope]:
    """using makes a scope that of this thread, and closes it at the end."""
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
        scope.close()


def within(seconds: float) -> contextlib.AbstractContextManager[Scope]:
    """within bounds what is done in it: "with within(5): ..." raises TimeoutError after five seconds."""
    return using(Scope(_current.get(), seconds))


def pause(seconds: float) -> None:
    """pause waits in the scope of this thread."""
    current().pause(seconds)
