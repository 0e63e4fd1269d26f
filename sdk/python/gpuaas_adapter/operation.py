"""One journalled operation, and its final status."""

from __future__ import annotations

import errno
import threading
import time
from typing import TYPE_CHECKING, Any

from .contract import ENDED, Failure, MAX_MESSAGE, Refusal, clip
from .feed import Status
from .journal import Journal, Record
from .scope import Interrupted, Why
from .types import Dispatch, read_dispatch

if TYPE_CHECKING:
    from .run import Run

_SPENT = "spent"
"""_SPENT is in the place of a token that has served."""


class Operation:
    """Operation is one operation as the journal records it. Its lock is locked while a record is written, so that
    memory is never ahead of the disk."""

    def __init__(self, operation_id: str) -> None:
        self.id = operation_id
        self.lock = threading.RLock()
        self.raw: dict[str, Any] = {}
        self.dispatch: Dispatch | None = None
        self.hash = ""
        self.status: Status = {}
        self.began = self.touched = 0.0
        self.generation = self.mark = 0
        self.steps: dict[str, Any] = {}
        self.saved: dict[str, str] = {}
        self.canceled = self.committed = self.stillborn = False
        self.run: Run | None = None

    @property
    def asked(self) -> Dispatch:
        """asked returns the newest dispatch."""
        assert self.dispatch is not None, "a loaded operation has a dispatch"
        return self.dispatch

    @property
    def attempt(self) -> int:
        """attempt returns the highest attempt that was dispatched."""
        return self.asked.attempt

    @property
    def ended(self) -> bool:
        """ended reports whether the operation has ended."""
        return self.status.get("state") in ENDED

    def apply(self, record: Record) -> None:
        """apply puts a record's changes into memory."""
        self.touched = record["at"]
        if "dispatch" in record:
            if not self.hash:
                self.hash, self.began = record["hash"], record.get("began", record["at"])
            self.raw = record["dispatch"]
            self.dispatch = read_dispatch(self.raw, self.id)
        if "generation" in record:
            self.generation = record["generation"]
            self.steps, self.saved = {}, {}
            self.canceled = self.committed = False
        if "status" in record:
            self.status, self.mark = record["status"], record.get("mark", 0)
        if "step" in record:
            self.steps[record["step"]] = record["spec"]
        self.saved.update(record.get("saved", {}))
        self.canceled = self.canceled or bool(record.get("canceled"))
        self.committed = self.committed or bool(record.get("committed"))
        self.stillborn = self.stillborn or bool(record.get("stillborn"))

    def last_record(self, status: Status, mark: int) -> Record:
        """last_record returns the only record of an ended operation, without steps, checkpoints and token."""
        return {
            "at": time.time(), "began": self.began, "dispatch": without_token(self.raw), "hash": self.hash,
            "generation": self.generation, "status": status, "mark": mark, "canceled": self.canceled,
            "committed": self.committed, "stillborn": self.stillborn,
        }


def without_token(raw: dict[str, Any]) -> dict[str, Any]:
    """without_token returns a dispatch without its token."""
    return {**raw, "platform": {**raw["platform"], "token": _SPENT}}


def load(journal: Journal, operation_id: str) -> Operation | None:
    """load rebuilds an operation. A file without a whole first record is of a dispatch that was never answered."""
    records = journal.read(operation_id)
    if not records:
        journal.remove(operation_id)
        return None
    operation = Operation(operation_id)
    for record in records:
        operation.apply(record)
    return operation


def accepted(dispatch: Dispatch, members: list[Any] | None = None) -> Status:
    """accepted returns the first status of an operation, and of one that begins again."""
    return {"operationId": dispatch.operation_id, "attempt": dispatch.attempt, "state": "accepted", "phase": "accepted",
            "percent": 0, "message": "", "members": members or []}


def canceled_before(dispatch: Dispatch) -> Status:
    """canceled_before returns the status of an operation that was canceled before its dispatch arrived."""
    said = "it was canceled before its dispatch arrived"
    error = {"code": "CANCELED", "message": said, "owner": "user", "retryable": True}
    return {**accepted(dispatch), "state": "canceled", "phase": "canceled", "message": said, "error": error}


def final(status: Status, why: Why | None, error: BaseException | None) -> Status:
    """final returns a status with its end. Success counts even after a cancel meanwhile: the function decides."""
    end = {name: value for name, value in status.items() if name not in ("waitsFor", "error")}
    if error is None:
        return {**end, "state": "succeeded", "phase": "done", "percent": 100}
    if why == "canceled":
        reason = {"code": "CANCELED", "message": "canceled on request", "owner": "user", "retryable": False}
        return {**end, "state": "canceled", "error": reason}
    failure = reason_of(why, error).body()
    return {**end, "state": "failed", "message": failure["message"], "error": failure}


def reason_of(why: Why | None, error: BaseException) -> Failure:
    """reason_of returns what the platform reads of an error. The text of an unexpected error stays in the log: it may
    contain addresses or file names of the adapter."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, Refusal):
        return Failure(error.code, error.message, "adapter", error.retryable)
    if why == "deadline" or (isinstance(error, Interrupted) and error.why == "deadline"):
        return Failure("DEADLINE_EXCEEDED", "the deadline passed before the operation ended")
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return Failure("INTERNAL", "the disk of the adapter's state is full")
    return Failure("INTERNAL", "the adapter had an internal error")


def cancel_answer(operation: Operation) -> dict[str, Any]:
    """cancel_answer returns the outcome of a request to cancel."""
    state = operation.status["state"]
    if state == "canceled":
        return {"outcome": "canceled", "message": "the operation was stopped"}
    if operation.ended:
        return {"outcome": "too_late", "message": f"the operation has {state}"}
    if operation.committed:
        return {"outcome": "too_late", "message": "the operation can no longer be stopped safely"}
    return {"outcome": "unknown", "message": "the operation is stopping and has not ended yet"}


def stale_fence(operation: Operation) -> Refusal:
    """stale_fence refuses a lower attempt than the highest."""
    return Refusal(409, "STALE_FENCE", f"attempt {operation.attempt} has been dispatched", "attempt")


def mismatch() -> Refusal:
    """mismatch refuses another specification under a known id."""
    return Refusal(409, "BODY_MISMATCH", "the operation was dispatched with another specification")


def clip_message(text: str) -> str:
    """clip_message cuts a message to its bound."""
    return clip(text, MAX_MESSAGE)
