"""The handle of an operation: it needs only the id, so a program that was restarted goes on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

from .generated import operations
from .errors import PlatformError

if TYPE_CHECKING:
    from .client import Client

_END_STATES = frozenset(("SUCCEEDED", "FAILED", "CANCELED"))


def has_ended(state: str) -> bool:
    """has_ended reports whether an operation in this state has ended."""
    return state in _END_STATES


class OperationHandle:
    """OperationHandle follows one operation."""

    def __init__(self, client: Client, id: str) -> None:
        self._client, self.id = client, id

    def get(self) -> operations.OperationDetail:
        """get reads the operation once."""
        return self._client.request(operations.get_operation(self.id))["operation"]

    def watch(self, seconds: float | None = None) -> Iterator[operations.OperationDetail]:
        """watch returns the operation as it is now and each time it changes, until it has ended."""
        last: operations.OperationDetail | None = None
        with self._client.subscribe(operations.watch_operation(self.id), completes=True, seconds=seconds) as feed:
            for data in feed:
                operation = data["operationProgress"]
                if operation == last:
                    continue  # a reconnect repeats the last state
                last = operation
                yield operation
                if has_ended(operation["state"]):
                    return

    def wait(self, seconds: float | None = None) -> operations.OperationDetail:
        """wait follows the operation to its end and returns it as it ended, well or badly: read its state. After
        seconds, if given, it raises TimeoutError; the operation goes on."""
        for operation in self.watch(seconds):
            if has_ended(operation["state"]):
                return operation
        operation = self.get()  # the feed may complete before it shows the end
        if has_ended(operation["state"]):
            return operation
        message = "the platform ended the feed before the operation ended"
        raise PlatformError("UNAVAILABLE", message, retryable=True)
