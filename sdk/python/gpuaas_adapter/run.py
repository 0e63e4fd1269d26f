"""One operation under way: what was requested, and the means to do it.

An operation's function is a sequence of named, idempotent steps. After a kill it is called again from its first line:
the same step is the same node task, with the bytes that were journalled before they were sent, and a finished step
returns at once with its old result."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import json
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping

from .contract import (
    Failure, HEALTHS, Health, Json, MAX_DETAIL, MAX_EVIDENCE, MEMBER_STATUSES, MemberStatus, bound_work, clip,
    is_unreachable, size_of,
)
from .log import Log, mask
from .operation import Operation, clip_message
from .platform import ApiError, Client, as_failure, trace_id
from .scope import Interrupted, Scope, Why, current, using, within
from .tasks import Task, TaskResult, teardown
from .types import Dispatch, Instance, Member, digest

if TYPE_CHECKING:
    from .engine import Engine

_PARALLEL = 8
_CLEANUP_SECONDS = 120
_FORCED_MARGIN = 5
_REPORT_PAUSE = 0.5
_REPORT_SECONDS = 5
_MAX_SAVED = 256 << 10
_MAX_KEY = 112
"""_MAX_KEY leaves place for what tells one look from another: the public API takes keys of 128."""


Ask = Callable[[Member, str, Task], "TaskResult | None"]
"""Ask is how Run and Call look at a member alike: None when it does not answer."""


class Run:
    """Run is what an operation's function works with. It is safe for many threads."""

    def __init__(self, engine: Engine, op: Operation, scope: Scope, log: Log) -> None:
        d = op.asked
        self._engine, self.op, self.scope, self.dispatch = engine, op, scope, d
        self.generation, self.done = op.generation, threading.Event()
        self.log = log.bind(operation=op.id, kind=d.kind, instance=d.instance.id, correlation_id=d.correlation_id)
        if known := trace_id(d.traceparent):
            self.log = self.log.bind(trace_id=known)
        self.client = Client(d.platform, d.correlation_id, self.log, traceparent=d.traceparent)
        self._news, self._over = threading.Event(), threading.Event()
        self._reporter: threading.Thread | None = None
        scope.end_at(d.deadline, Interrupted("deadline"))

    def extend(self, dispatch: Dispatch) -> None:
        """extend takes over the token and the deadline of a higher attempt."""
        self.client.take(dispatch.platform)
        self.scope.end_at(dispatch.deadline, Interrupted("deadline"))

    def close(self) -> None:
        """close ends the pushing of reports."""
        self._over.set()
        self._news.set()

    # -- the request

    @property
    def why(self) -> Why | None:
        """why returns the reason for which the run was interrupted."""
        reason = self.scope.reason
        return reason.why if isinstance(reason, Interrupted) else None

    @property
    def instance(self) -> Instance:
        """instance is the instance; its config is valid by the app's schema."""
        return self.dispatch.instance

    @property
    def members(self) -> tuple[Member, ...]:
        """members are all members of the instance: the app must forget every other member."""
        return self.dispatch.members

    @property
    def targets(self) -> list[Member]:
        """targets are the members that the operation acts on."""
        return self.dispatch.target_members

    @property
    def change(self) -> Mapping[str, Json]:
        """change is the desired change of kinds that have one; empty otherwise."""
        return self.dispatch.change if isinstance(self.dispatch.change, dict) else {}

    @property
    def force(self) -> bool:
        """force reports that the caller chose to finish now, though work is lost and nodes cannot be reached."""
        return self.dispatch.force

    def of(self, component: str) -> list[Member]:
        """of returns the members of one component, in the order of their indexes."""
        return self.dispatch.of(component)

    def reaches(self, member: Member) -> bool:
        """reaches reports whether a node task can be requested: under force, not on an unreachable node."""
        return not self.force or member.node.reachable

    # -- the reports

    def progress(self, phase: str, percent: int, message: str) -> None:
        """progress reports what is being done and how much is done, 0 to 100. It never decreases."""
        status = self.op.status
        self.update(status["phase"] != phase, phase=clip(phase, 100), message=clip_message(mask(message)),
                    percent=max(status["percent"], min(percent, 100)))

    def member(self, member_id: str, status: MemberStatus, health: Health,
               detail: Mapping[str, Json] | None = None) -> None:
        """member reports the state of a member; detail is an object of at most 4 KiB."""
        if status not in MEMBER_STATUSES or health not in HEALTHS:
            raise ValueError(f"member {member_id}: {status!r}, {health!r} are not in the contract")
        update: dict[str, Json] = {"id": member_id, "status": status, "health": health}
        if detail is not None:
            if size_of(detail) > MAX_DETAIL:
                raise ValueError(f"detail of member {member_id} is larger than {MAX_DETAIL} bytes")
            update["detail"] = dict(detail)
        with self.op.lock:
            held = self.op.status["members"]
            if any(m["id"] == member_id for m in held):
                members = [update if m["id"] == member_id else m for m in held]
            else:
                members = [*held, update]
            self.update(True, members=members)

    def evidence(self, key: str, value: Json) -> None:
        """evidence records observations that prove the outcome; all of it is at most 64 KiB."""
        with self.op.lock:
            evidence = {**self.op.status.get("evidence", {}), key: value}
            if size_of(evidence) > MAX_EVIDENCE:
                raise ValueError(f"evidence {key!r}: more than {MAX_EVIDENCE} bytes in all")
            self.update(True, evidence=evidence)

    def waits_for(self, work: list[dict[str, Json]]) -> None:
        """waits_for reports to people which work the operation waits for now; an empty list ends the report."""
        bounded = bound_work(work)
        with self.op.lock:
            if self.op.status.get("waitsFor", []) != bounded:
                self.update(False, waitsFor=bounded)

    def once(self, name: str, make: Callable[[], str]) -> str:
        """once returns the value saved under name, created and saved the first time: a value that is random or depends
        on the time stays the same after a kill. Never save a secret in clear."""
        with self.op.lock:
            if name in self.op.saved:
                return self.op.saved[name]
        value = make()
        if len(value) > _MAX_SAVED:
            raise ValueError(f"checkpoint {name!r}: more than {_MAX_SAVED} characters")
        with self.op.lock:
            self._stands()
            self._engine.record(self.op, {"saved": {name: value}})
        return value

    def commit(self) -> None:
        """commit marks the point after which stopping would do harm: from here on a cancel is answered "too late". The
        run is interrupted when the cancel arrived first."""
        with self.op.lock:
            self._stands()
            if self.op.canceled:
                raise Interrupted("canceled")
            self._engine.record(self.op, {"committed": True})

    def update(self, durable: bool, **change: Any) -> None:
        """update changes the status while this run is the operation's current run. Progress alone is not written to the
        disk; what a restart must not forget is."""
        with self.op.lock:
            self._stands()
            if self.op.ended:
                raise RuntimeError("the operation has ended")
            status = {**self.op.status, **change}
            if durable:
                self._engine.record(self.op, {"status": status}, durable=False)
            else:
                self.op.status = status
            self._engine.feed.put(status)
        self._tell()

    def _stands(self) -> None:
        if self.op.generation != self.generation:
            raise Interrupted("forced")

    def _tell(self) -> None:
        self._news.set()
        with self.op.lock:
            if self._reporter is None:
                self._reporter = threading.Thread(target=self._report, daemon=True, name=f"report-{self.op.id}")
                self._reporter.start()

    def _report(self) -> None:
        """_report pushes the status after changes. A push that fails is not repeated: the platform reads the feed."""
        while True:
            self._news.wait()
            if self._over.is_set():
                return
            self._news.clear()
            try:
                with using(Scope(self.scope, _REPORT_SECONDS)):
                    self.client.report(self.op.status)
            except (ApiError, TimeoutError, Interrupted) as error:
                self.log.debug("the platform did not accept the report", error=str(error))
            self._over.wait(_REPORT_PAUSE)

    # -- node tasks

    def do(self, member: Member, step: str, task: Task) -> TaskResult:
        """do runs a node task on a member, waits for it, and requires that it succeeds. The step names it within the
        operation: the same step is the same task, also after a kill."""
        return self.attempt(member, step, task).require(step, member.id)

    def attempt(self, member: Member, step: str, task: Task) -> TaskResult:
        """attempt is do, but returns a task that did not succeed. What it sends is on disk before it is sent."""
        self._reach(member, step)
        key = self._key(member, step)
        with self.op.lock:
            self._stands()
            kept = self.op.steps.get(key)
            if kept is None:
                kept = {"kind": task.kind, "spec": json.loads(json.dumps(task.spec)), "seconds": task.seconds}
                self._engine.record(self.op, {"step": key, "spec": kept})
        return self._send(member, step, key, Task(kept["kind"], kept["spec"], kept["seconds"]))

    def look(self, member: Member, step: str, task: Task) -> TaskResult:
        """look is attempt for a task that only reads: every call is a new task and nothing is journalled. The answer is
        current, also after a kill; the task must change nothing."""
        self._reach(member, step)
        return self._send(member, step, f"{self._key(member, step)}.{secrets.token_hex(6)}", task)

    def ask(self, member: Member, step: str, task: Task, seconds: float = 10) -> TaskResult | None:
        """ask is look for at most so many seconds, whatever becomes of the node: None when it did not answer or the
        task did not succeed."""
        if not member.node.reachable:
            return None
        try:
            with within(seconds):
                result = self.look(member, step, task.within(max(1, int(seconds))))
        except (TimeoutError, Failure):
            return None
        return result if result.succeeded else None

    def _key(self, member: Member, step: str) -> str:
        key = f"{self.op.id}.{self.generation}.{member.id}.{step}"
        if len(key) <= _MAX_KEY and key.isascii() and key.isprintable() and " " not in key:
            return key
        return f"{self.op.id}.{self.generation}.{digest(member.id, step)}"  # the public API takes no such key

    def _reach(self, member: Member, step: str) -> None:
        current().check()
        if not self.reaches(member):
            raise _away(member, step)

    def _send(self, member: Member, step: str, key: str, task: Task) -> TaskResult:
        """Under force a task is waited for only a little longer than it may take: its node may be lost by now."""
        outer = current()
        try:
            if not self.force:
                return self.client.run(member.id, key, task)
            with within(task.seconds + _FORCED_MARGIN):
                return self.client.run(member.id, key, task)
        except TimeoutError:
            if self.force and not outer.ended:
                raise _away(member, step) from None
            raise
        except ApiError as error:
            raise as_failure(step, error) from error

    def each(self, members: Iterable[Member], work: Callable[[Member], None]) -> None:
        """each works on several members at once, eight at most, and raises the first error after all have ended; the
        others are cut off by then."""
        each(members, work)

    @contextlib.contextmanager
    def cleanup(self) -> Iterator[None]:
        """cleanup is for undoing things after the run was interrupted, for at most two minutes; its errors are logged.
        When the adapter stops, or the operation begins again with force, the work goes on and nothing is undone: every
        call in cleanup is interrupted at once."""
        scope = Scope(None, _CLEANUP_SECONDS)
        if self.why in ("stopping", "forced"):
            scope.end(Interrupted(self.why))
        hook = self._engine.on_stop(lambda: scope.end(Interrupted("stopping")))
        try:
            with using(scope):
                yield
        except Exception as error:
            self.log.warning("not everything was undone", error=str(error))
        finally:
            hook()

    @contextlib.contextmanager
    def undoing(self, undo: Callable[[], None]) -> Iterator[None]:
        """undoing calls undo, as a cleanup, when its block fails or is interrupted."""
        try:
            yield
        except BaseException:
            with self.cleanup():
                undo()
            raise

    def teardown(self, members: Iterable[Member]) -> None:
        """teardown deletes the sandboxes of members and reports each as removed once its node reports that nothing is
        left. Under force a node that cannot be reached is passed over, and the evidence states it."""
        left: dict[str, int] = {}
        passed: list[str] = []

        def one(member: Member) -> None:
            try:
                residue = self.do(member, "teardown", teardown(30 if self.force else 300)).residue
                left[member.id] = residue
                if residue:
                    raise Failure("RESIDUE_LEFT", f"member {member.id} left {residue} things on its node", "node")
                self.member(member.id, "removed", "unknown")
            except Failure as failure:
                if not (self.force and is_unreachable(failure)):
                    raise
                passed.append(member.id)
                self.member(member.id, "removed", "unknown", {"tornDown": False})

        self.each(members, one)
        if passed:
            self.evidence("notTornDown", sorted(passed))
        self.evidence("residue", left)


def each(members: Iterable[Member], work: Callable[[Member], None]) -> None:
    """each works on several members at once, in the scope of this thread; see Run.each."""
    scope = Scope(current())
    errors: list[BaseException] = []

    def one(member: Member) -> None:
        try:
            scope.check()
            work(member)
        except BaseException as error:
            errors.append(error)
            scope.end(error if isinstance(error, Interrupted) else Interrupted("canceled"))

    with using(scope), ThreadPoolExecutor(_PARALLEL, thread_name_prefix="member") as pool:
        for member in members:
            pool.submit(contextvars.copy_context().run, functools.partial(one, member))  # type: ignore[arg-type]
    if errors:
        raise errors[0]


def _away(member: Member, step: str) -> Failure:
    text = f"step {step} on member {member.id}: node {member.node.name} cannot be reached"
    return Failure("NODE_UNREACHABLE", text, "node")
