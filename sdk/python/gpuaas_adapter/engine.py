"""The engine takes dispatches, runs them, answers cancels, and resumes unended operations after a kill."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from .contract import Refusal
from .feed import Feed, Status
from .instances import Instances, Known
from .journal import Journal, Record
from .log import Log
from .operation import (
    Operation, accepted, cancel_answer, canceled_before, final, load, mismatch, stale_fence, without_token,
)
from .scope import Interrupted, Scope, using
from .types import Dispatch

if TYPE_CHECKING:
    from .run import Run

MAX_RUNNING = 64
"""MAX_RUNNING operations run at once; more are accepted and wait."""
MAX_OPERATIONS = 20_000
RETENTION = 30 * 24 * 3600.0
"""RETENTION is how long ended operations are remembered, in seconds. The newest one of an instance that still exists is
kept for as long as that."""
CANCEL_SECONDS = 10
"""CANCEL_SECONDS is how long the answer to a cancel waits for the run to end."""
_TOMBSTONE_SECONDS = 3600.0
_MAX_TOMBSTONES = 10_000
_END_PAUSE = 1.0

Function = Callable[["Run"], None]
Find = Callable[[str, str], "Function | None"]


class Engine:
    """Engine keeps the operations of one adapter."""

    def __init__(self, folder: Path, log: Log, find: Find) -> None:
        self._log, self._find = log, find
        self._journal = Journal(folder)
        self._lock = threading.RLock()
        self._slots = threading.BoundedSemaphore(MAX_RUNNING)
        self._scope = Scope()
        self._threads: set[threading.Thread] = set()
        self._operations: dict[str, Operation] = {}
        self._instances = Instances()
        self._tombstones = self._journal.tombstones()
        self.feed = Feed(self._journal.epoch(), self._journal.ceiling(), self._journal.raise_ceiling)

    # -- life

    def start(self) -> None:
        """start resumes every operation that has not ended."""
        loaded = [op for op in (load(self._journal, one) for one in self._journal.ids()) if op is not None]
        loaded.sort(key=lambda op: op.began)
        with self._lock:
            self._instances.recall(loaded)
            self._operations.update((op.id, op) for op in loaded)
        for op in loaded:
            with op.lock:
                if op.ended:
                    self.feed.restore(op.status, op.mark)
                    continue
                self._log.info("resuming operation", operation=op.id, kind=op.asked.kind, phase=op.status["phase"])
                self.feed.put(op.status)
                self._launch(op, None)
        with self._lock:
            self._sweep()

    def stop(self) -> None:
        """stop ends the runs without ending their operations, which the next start resumes, and closes the journal."""
        self._scope.end(Interrupted("stopping"))
        self.feed.stop()
        while True:
            with self._lock:
                threads = list(self._threads)
            if not threads:
                break
            for thread in threads:
                thread.join(1)
        self._journal.close()

    def on_stop(self, callback: Callable[[], None]) -> Callable[[], None]:
        """on_stop calls back when the engine stops, and returns a function that removes the callback."""
        return self._scope.on_end(callback)

    @property
    def stopping(self) -> bool:
        """stopping reports whether the engine has stopped taking work."""
        return self._scope.ended

    # -- requests

    def knows(self, operation: str) -> bool:
        """knows reports whether an operation has been dispatched."""
        with self._lock:
            return operation in self._operations

    def instance(self, instance: str, gone: bool = False) -> Known | None:
        """instance returns an instance as it was last dispatched; with gone, also a decommissioned one."""
        with self._lock:
            one = self._instances.known.get(instance)
            if one is None or (one.gone and not gone):
                return None
            return Known(one.operation, one.instance, () if one.gone else one.members, one.gone)

    def dispatch(self, dispatch: Dispatch, raw: dict[str, Any]) -> tuple[Status, bool]:
        """dispatch begins an operation, repeats the answer for one that is known, or refuses. The second value reports
        that nothing is left to do. The operation is on disk when the call returns."""
        with self._lock:
            op = self._operations.get(dispatch.operation_id)
            fresh = op is None
            if op is None:
                op = Operation(dispatch.operation_id)
                op.lock.acquire()  # a second dispatch of this id waits until this one is journalled
                self._operations[op.id] = op
            buried = dispatch.attempt <= self._tombstones.get(op.id, (0, 0.0))[0]
        if not fresh:
            with op.lock:
                return self._repeat(op, dispatch, raw)
        try:
            return self._stillborn(op, dispatch, raw) if buried else self._begin(op, dispatch, raw)
        except BaseException:
            with self._lock:
                self._operations.pop(op.id, None)
            raise
        finally:
            op.lock.release()

    def _begin(self, op: Operation, dispatch: Dispatch, raw: dict[str, Any]) -> tuple[Status, bool]:
        status = accepted(dispatch)
        self.record(op, {"dispatch": raw, "hash": dispatch.spec_hash(), "generation": dispatch.attempt,
                         "status": status})
        try:
            self.feed.put(status)
        except OSError:
            self._journal.remove(op.id)  # it is refused, so the next start must not resume it
            raise
        with self._lock:
            self._instances.learn(op.id, dispatch)
            self._sweep(only_if_many=True)
        self._launch(op, None)
        return status, False

    def _stillborn(self, op: Operation, dispatch: Dispatch, raw: dict[str, Any]) -> tuple[Status, bool]:
        """The operation was canceled before its dispatch arrived: nothing of it runs."""
        status = canceled_before(dispatch)
        self.record(op, {"dispatch": without_token(raw), "hash": dispatch.spec_hash(), "generation": dispatch.attempt,
                         "status": status, "mark": self.feed.mark(), "canceled": True, "stillborn": True})
        self.feed.put(status)
        return status, True

    def _repeat(self, op: Operation, dispatch: Dispatch, raw: dict[str, Any]) -> tuple[Status, bool]:
        if op.dispatch is None:
            raise Refusal(503, "UNAVAILABLE", "the first dispatch of this operation was not journalled", retryable=True)
        if op.hash != dispatch.spec_hash():
            raise mismatch()
        if dispatch.attempt < op.attempt:
            raise stale_fence(op)
        if dispatch.attempt > op.attempt:
            self._raise(op, dispatch, raw)
        return op.status, op.ended

    def _raise(self, op: Operation, dispatch: Dispatch, raw: dict[str, Any]) -> None:
        """_raise takes a higher attempt: a run under way goes on with the new deadline and token, or begins again when
        force came with the attempt; a failed run begins again; one that succeeded or was canceled stays as it is."""
        failed = op.status["state"] == "failed"
        if op.ended and not failed:
            before = op.raw
            op.raw = {**before, "attempt": dispatch.attempt}
            try:
                self.publish_end(op, {**op.status, "attempt": dispatch.attempt})
            except OSError:
                op.raw = before  # or a repeat would get the status of the earlier attempt
                raise
        elif failed or (dispatch.force and not op.asked.force):
            status = accepted(dispatch, None if failed else op.status["members"])
            record: Record = {"dispatch": raw, "generation": dispatch.attempt, "status": status}
            self.record(op, record if failed else {**record, "committed": op.committed})
            self.feed.put(status)
            before_run = op.run
            if before_run is not None:
                before_run.scope.end(Interrupted("forced"))
            self._launch(op, before_run)
        else:
            status = {**op.status, "attempt": dispatch.attempt}
            # A run that began with force keeps it.
            self.record(op, {"dispatch": {**raw, "force": op.asked.force}, "status": status})
            self.feed.put(status)
            if op.run is not None:
                op.run.extend(dispatch)

    def cancel(self, operation: str, attempt: int) -> dict[str, Any]:
        """cancel requests that a run stops, if that is still safe, and returns the outcome."""
        op = self._find_or_bury(operation, attempt)
        if op is None:
            return {"outcome": "unknown", "tombstone": True,
                    "message": "this operation was never dispatched; this attempt can no longer start it"}
        with op.lock:
            if attempt < op.attempt:
                raise stale_fence(op)
            if op.ended or op.committed:
                return cancel_answer(op)
            self.record(op, {"canceled": True})
            run = op.run
        if run is not None:
            run.scope.end(Interrupted("canceled"))
            run.done.wait(CANCEL_SECONDS)
        with op.lock:
            return cancel_answer(op)

    def _find_or_bury(self, operation: str, attempt: int) -> Operation | None:
        """A dispatch that is under way when its operation ends may arrive after the cancel: it finds a tombstone."""
        with self._lock:
            op = self._operations.get(operation)
            if op is None and attempt > self._tombstones.get(operation, (0, 0.0))[0]:
                self._journal.bury(operation, attempt)
                self._tombstones[operation] = (attempt, time.time())
                if len(self._tombstones) > _MAX_TOMBSTONES:
                    self._exhume()
            return op

    def _exhume(self) -> None:
        for operation, (_, at) in list(self._tombstones.items()):
            if time.time() - at > _TOMBSTONE_SECONDS:
                self._journal.exhume(operation)
                del self._tombstones[operation]

    # -- runs

    def _launch(self, op: Operation, before: Run | None) -> None:
        """_launch begins or resumes a run; it first waits for the run that it replaces."""
        from .run import Run

        run = Run(self, op, Scope(self._scope), self._log)
        op.run = run
        if op.canceled:
            run.scope.end(Interrupted("canceled"))
        thread = threading.Thread(target=self._thread, args=(run, before), daemon=True, name=f"run-{op.id}")
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def _thread(self, run: Run, before: Run | None) -> None:
        try:
            if before is not None:
                before.done.wait()
            with using(run.scope):
                self._execute(run)
        finally:
            run.close()
            with run.op.lock:
                if run.op.run is run:
                    run.op.run = None
            run.done.set()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _execute(self, run: Run) -> None:
        slot = self._slot(run.scope)
        began = run.op.status["state"] != "accepted"
        error: BaseException | None = None
        try:
            # A run that was interrupted before it did anything has nothing to undo.
            if slot or (began and run.why in ("canceled", "deadline")):
                self._call(run)
            else:
                run.scope.check()
        except BaseException as caught:  # also an interruption: it decides how the operation ends
            error = caught
        finally:
            if slot:
                self._slots.release()
        self._end(run, error)

    def _slot(self, scope: Scope) -> bool:
        while not scope.ended:
            if self._slots.acquire(timeout=0.2):
                return True
        return False

    def _call(self, run: Run) -> None:
        function = self._find(run.dispatch.instance.app, run.dispatch.kind)
        if function is None:
            raise Refusal(422, "UNSUPPORTED_OPERATION", f"this build does not support {run.dispatch.kind}")
        run.update(True, state="running")
        run.log.info("operation running", attempt=run.dispatch.attempt)
        function(run)

    def _end(self, run: Run, error: BaseException | None) -> None:
        """_end writes how a run ended. A run that is only interrupted has no end to write. A write that the journal
        refuses, such as on a full disk, is repeated until it succeeds."""
        if run.why in ("stopping", "forced"):
            return
        tried = False
        while True:
            try:
                with run.op.lock:
                    if run.op.generation != run.generation:
                        return
                    if run.op.ended:
                        self.feed.put(run.op.status)
                    else:
                        self.publish_end(run.op, final(run.op.status, run.why, error))
                break
            except OSError as failure:
                if not tried:
                    run.log.error("end of operation not journalled; trying again until it is", error=str(failure))
                tried = True
                if self._scope.ended:
                    return
                time.sleep(_END_PAUSE)
        with self._lock:
            self._instances.settle(run.op.asked, run.op.status)
        unexpected = error if run.op.status.get("error", {}).get("code") == "INTERNAL" else None
        run.log.info(f"operation {run.op.status['state']}", error=str(error) if error else None, exc_info=unexpected)

    # -- records

    def record(self, op: Operation, record: Record, durable: bool = True) -> None:
        """record journals a change and applies it; op.lock is locked."""
        record = {"at": time.time(), **record}
        self._journal.append(op.id, record, durable)
        op.apply(record)

    def publish_end(self, op: Operation, status: Status) -> None:
        """publish_end journals a terminal status by rewriting the file, and publishes it; op.lock is locked."""
        record = op.last_record(status, self.feed.mark())
        self._journal.replace(op.id, record)
        op.apply(record)
        self.feed.put(status)

    def _sweep(self, only_if_many: bool = False) -> None:
        """_sweep forgets operations that ended long ago, and more when there are too many. An operation that is locked
        now is busy, and so not old. self._lock is locked."""
        if only_if_many and len(self._operations) <= MAX_OPERATIONS:
            return
        ended = []
        for op in self._operations.values():
            if op.lock.acquire(blocking=False):
                if op.ended and not self._instances.newest(op):
                    ended.append(op)
                op.lock.release()
        too_many = len(self._operations) - MAX_OPERATIONS * 9 // 10
        for n, op in enumerate(sorted(ended, key=lambda one: one.touched)):
            if n >= too_many and time.time() - op.touched < RETENTION:
                return
            self._journal.remove(op.id)
            del self._operations[op.id]
            self.feed.drop(op.id)
            self._instances.drop(op)
