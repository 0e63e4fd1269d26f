"""What the author of an adapter writes: an App, its functions, and what they work with."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

import jsonschema

from .contract import KINDS, Health, Json, refuse
from .log import Log
from .platform import Client
from .run import Run, each
from .scope import within
from .tasks import Task, TaskResult
from .types import ActionRequest, Asked, Instance, Member, PlanRequest, digest

_EMPTY = {"type": "object", "maxProperties": 0}


@dataclass
class Call:
    """Call is what an action, an observation, a plan or a usage query has to work with. The tasks of an action carry
    keys of the action, so that a repeat is the same tasks; every other call runs new tasks."""

    instance: Instance
    members: tuple[Member, ...]
    client: Client
    log: Log
    key: str
    request: ActionRequest | None = None

    @property
    def input(self) -> Mapping[str, Json]:
        """input is the input of an action, valid by its schema."""
        return {} if self.request is None else dict(self.request.input)

    def of(self, component: str) -> list[Member]:
        """of returns the members of one component, in the order of their indexes."""
        return sorted((m for m in self.members if m.component == component), key=lambda m: m.index)

    def do(self, member: Member, step: str, task: Task) -> TaskResult:
        """do runs a node task and requires that it succeeds."""
        return self.attempt(member, step, task).require(step, member.id)

    def attempt(self, member: Member, step: str, task: Task) -> TaskResult:
        """attempt is do, but returns a task that did not succeed."""
        return self.client.run(member.id, f"{self.key}.{step}", task)

    def ask(self, member: Member, step: str, task: Task, seconds: float = 5) -> TaskResult | None:
        """ask runs a task that only reads, for at most so many seconds; None when the node did not answer or the task
        did not succeed. It runs no task on a node that is known to be unreachable."""
        if not member.node.reachable:
            return None
        try:
            with within(seconds):
                result = self.attempt(member, step, task.within(max(1, int(seconds))))
        except TimeoutError:
            return None
        return result if result.succeeded else None

    def each(self, members: Iterable[Member], work: Callable[[Member], None]) -> None:
        """each works on several members at once; see Run.each."""
        each(members, work)


@dataclass
class PlanCall(Call):
    """PlanCall is a Call with the planned operation."""

    asked: PlanRequest = field(kw_only=True)

    @property
    def targets(self) -> list[Member]:
        """targets are the members that the operation would act on."""
        return self.asked.target_members


Operation = Callable[[Run], None]
Action = Callable[[Call], Mapping[str, Json]]
Observe = Callable[[Call], Mapping[str, Json]]
Check = Callable[[Asked], None]
Plan = Callable[[PlanCall], Mapping[str, Json]]
Leaving = Callable[[PlanCall, int], list[Member]]
Usage = Callable[[Call, str], Mapping[str, Json]]


class App:
    """App is one app of an adapter: its description, which is the manifest's own, and its functions."""

    def __init__(self, manifest: Mapping[str, Json]) -> None:
        self.slug = str(manifest["app"])
        self.version = str(manifest.get("version", ""))
        self.components: list[dict[str, Json]] = list(manifest["components"])
        self.config_schema = manifest.get("configSchema")
        self.declared: list[dict[str, Json]] = list(manifest.get("actions", []))
        self.usage_dimensions: list[dict[str, Json]] = list(manifest.get("usageDimensions", []))
        self.operations: dict[str, Operation] = {}
        self.actions: dict[str, Action] = {}
        self.check_function: Check | None = None
        self.observe_function: Observe | None = None
        self.plan_function: Plan | None = None
        self.leaving_function: Leaving | None = None
        self.usage_function: Usage | None = None
        self._config = _compile(self.config_schema)
        self._inputs = {str(a["name"]): _compile(a["inputSchema"]) for a in self.declared}
        self._outputs = {str(a["name"]): _compile(a["outputSchema"]) for a in self.declared}

    @classmethod
    def from_manifest(cls, document: bytes | str) -> App:
        """from_manifest begins an app from its manifest, so that the adapter describes itself with the content that it
        is published with."""
        return cls(json.loads(document))

    # -- decorators

    def operation(self, *kinds: str) -> Callable[[Operation], Operation]:
        """operation sets which kinds a function carries out."""
        for kind in kinds:
            if kind not in KINDS:
                raise ValueError(f"{kind!r} is not an operation kind")

        def take(function: Operation) -> Operation:
            self.operations.update({kind: function for kind in kinds})
            return function

        return take

    def action(self, name: str) -> Callable[[Action], Action]:
        """action sets which action of the manifest a function carries out."""
        if name not in self._inputs:
            raise ValueError(f"the manifest has no action {name!r}")

        def take(function: Action) -> Action:
            self.actions[name] = function
            return function

        return take

    def check(self, function: Check) -> Check:
        """check sets the function that refuses an unsafe operation before anything is done; it calls no node."""
        self.check_function = function
        return function

    def observe(self, function: Observe) -> Observe:
        """observe sets the function that reports the state of an instance now: health, message, members."""
        self.observe_function = function
        return function

    def plan(self, function: Plan) -> Plan:
        """plan sets the function that returns what an operation would do."""
        self.plan_function = function
        return function

    def leaving(self, function: Leaving) -> Leaving:
        """leaving sets the function that chooses the members that leave when a component gets fewer."""
        self.leaving_function = function
        return function

    def usage(self, function: Usage) -> Usage:
        """usage sets the function that returns the usage records of an instance after a cursor."""
        self.usage_function = function
        return function

    # -- what the server uses

    def complete(self) -> None:
        """complete raises where the manifest has an action without a function."""
        for name in self._inputs:
            if name not in self.actions:
                raise ValueError(f"the manifest's action {name!r} has no function")

    def info(self) -> dict[str, Json]:
        """info returns the app as the adapter describes it."""
        said: dict[str, Json] = {
            "slug": self.slug, "components": self.components, "operations": sorted(self.operations),
            "configSchema": self.config_schema, "actions": self.declared, "usageDimensions": self.usage_dimensions,
        }
        return {**said, "choosesLeaving": True} if self.leaving_function is not None else said

    def check_config(self, config: Json) -> None:
        """check_config refuses a config that breaks the schema."""
        _check(self._config, config, "instance.config", "CONFIG_INVALID")

    def check_input(self, action: str, value: Json) -> None:
        """check_input refuses an input that breaks the action's schema."""
        _check(self._inputs[action], value, "input", "INVALID_ARGUMENT")

    def check_output(self, action: str, value: Json) -> None:
        """check_output raises ValueError for an output that breaks the action's schema: a fault of the adapter."""
        error = next(iter(self._outputs[action].iter_errors(value)), None)
        if error is not None:
            raise ValueError(f"action {action} breaks its output schema: {error.message}")


def _compile(schema: Json) -> Any:
    """_compile prepares a schema; null accepts only an empty object. References to other documents are not followed."""
    schema = _EMPTY if schema is None else schema
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _check(validator: Any, value: Json, path: str, code: str) -> None:
    errors = sorted(validator.iter_errors(value), key=lambda error: (len(error.absolute_path), error.message))
    if not errors:
        return
    at = path
    for part in errors[0].absolute_path:
        at += f"[{part}]" if isinstance(part, int) else f".{part}"
    raise refuse(code, at, f"{at}: {errors[0].message}")


def fresh_key(kind: str) -> str:
    """fresh_key returns a new key, for tasks that are not repeats."""
    return f"{kind}.{secrets.token_hex(12)}"


def action_key(instance: str, action: str, key: str) -> str:
    """action_key returns the part of a key that a repeat of an action shares with the first call."""
    return digest(instance, action, key)


def check_counts(app: App, asked: Asked) -> None:
    """check_counts refuses members of unknown components, and counts outside of the manifest's bounds."""
    bounds = {str(c["key"]): c for c in app.components}
    for n, member in enumerate(asked.members):
        if member.component not in bounds:
            text = f"component {member.component!r} does not exist"
            raise refuse("UNKNOWN_COMPONENT", f"members[{n}].componentKey", text)
    if asked.kind == "instance.decommission":
        return
    for n, (key, count) in enumerate(asked.instance.components.items()):
        at = f"instance.components[{n}]"
        if key not in bounds:
            raise refuse("UNKNOWN_COMPONENT", f"{at}.key", f"component {key!r} does not exist")
        least, most = bounds[key]["min"], bounds[key]["max"]
        if count < least:
            raise refuse("BELOW_MINIMUM", f"{at}.count", f"{count} would be left: the minimum is {least}")
        if count > most:
            raise refuse("ABOVE_MAXIMUM", f"{at}.count", f"{count} is more than the maximum of {most}")


def observe_members(call: Call, what: str, one: Callable[[Member], tuple[Health, str]]) -> dict[str, Json]:
    """observe_members reads all members at once and judges the instance by them: unknown while silent members may
    change the verdict. what states what a healthy member does, such as "peers run"."""
    seen: dict[str, tuple[Health, str]] = {}

    def ask(member: Member) -> None:
        seen[member.id] = one(member)

    each(call.members, ask)
    counts = {health: sum(1 for found, _ in seen.values() if found == health) for health in ("healthy", "unknown")}
    message = f"{counts['healthy']} of {len(seen)} {what}"
    if counts["unknown"]:
        message += f", {counts['unknown']} unknown"
    health: Health = "unhealthy"
    if seen and counts["healthy"] == len(seen):
        health = "healthy"
    elif counts["healthy"]:
        health = "degraded"
    elif counts["unknown"]:
        health = "unknown"
    members = [{"id": m.id, "health": seen[m.id][0], "message": seen[m.id][1]} for m in call.members]
    return {"health": health, "message": message, "members": members}


def plan_of_work(work: list[dict[str, Json]], silent: list[str], *, lost: bool, reversible: bool,
                 what: str) -> dict[str, Json]:
    """plan_of_work returns a plan for the work that runs: lost work makes the operation unsafe; other work is waited
    for. silent names the members that did not answer: unknown work is not safe. what names the work: "clients"."""
    said = f"{len(work)} {what} {'are lost' if lost else 'are waited for'}" if work else f"no {what} there"
    reasons = [{"code": "WORK_LOST" if lost else "WORK_AWAITED", "message": said}] if work else []
    for name in silent:
        reasons.append({"code": "NODE_UNREACHABLE", "message": f"{name} does not answer", "path": "members"})
    verdict = "unsafe" if work and lost else "unknown" if silent else "safe"
    return {"verdict": verdict, "reversible": reversible, "reasons": reasons, "workLost": work if lost else [],
            "message": said}
