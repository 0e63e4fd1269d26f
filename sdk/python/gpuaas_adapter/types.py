"""The bodies that the platform sends, read and checked. An invalid body is refused with the path of the field."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from dataclasses import dataclass, field
from typing import Mapping

from .contract import (
    KINDS, MAX_KEY, Json, clip, malformed, read_flag, read_id, read_list, read_object, read_text, read_texts,
    read_whole,
)


@dataclass(frozen=True)
class Node:
    """Node is the node a member is bound to."""

    id: str
    name: str
    address: str
    sealing_key: str
    allocation_id: str
    shape: str
    gpus: int
    cpus: int
    memory_mib: int
    reachable: bool = True


@dataclass(frozen=True)
class Member:
    """Member is one realised part of an instance, bound to a node."""

    id: str
    component: str
    index: int
    status: str
    cordoned: bool
    labels: Mapping[str, str]
    address: str
    ranges: Mapping[str, str]
    node: Node
    volumes: tuple[Mapping[str, Json], ...] = ()

    def __hash__(self) -> int:
        """A member is known by its id, also as the key of a dictionary."""
        return hash(self.id)

    @property
    def name(self) -> str:
        """name is the component and the index, such as "peer-0"."""
        return f"{self.component}-{self.index}"

    @property
    def host(self) -> str:
        """host returns the address at which other members reach it: its own, or else its node's."""
        return self.address or self.node.address


@dataclass(frozen=True)
class Instance:
    """Instance holds what an adapter needs to know of an app instance."""

    id: str
    name: str
    tenant_id: str
    project_id: str
    app: str
    version: str
    config: Mapping[str, Json]
    components: Mapping[str, int]
    operating_mode: str = ""
    control_plane_scope: str = ""
    runtime_profile: Json = None
    artifacts: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Platform:
    """Platform is how the adapter reaches the public API: with a token narrowed to one task, which its repr hides."""

    graphql_url: str
    token: str = field(repr=False)
    token_expires_at: float = 0.0


@dataclass(frozen=True)
class Asked:
    """Asked holds the fields that a dispatch and a plan request share."""

    kind: str
    correlation_id: str
    instance: Instance
    members: tuple[Member, ...]
    targets: tuple[str, ...]
    change: Json
    force: bool
    platform: Platform

    def of(self, component: str) -> list[Member]:
        """of returns the members of one component, in the order of their indexes."""
        return sorted((m for m in self.members if m.component == component), key=lambda m: m.index)

    @property
    def target_members(self) -> list[Member]:
        """target_members are the members that the operation acts on."""
        return [m for m in self.members if m.id in self.targets]


@dataclass(frozen=True)
class Dispatch(Asked):
    """Dispatch is one operation to carry out: the body of PUT /v1/operations/{id}."""

    operation_id: str = ""
    attempt: int = 1
    deadline: float = 0.0
    traceparent: str = ""

    def spec_hash(self) -> str:
        """spec_hash is the identity of the dispatch: what never changes between two dispatches of one operation.

        It omits attempt, deadline, force, token and trace, and what changes while the operation runs: a member's
        status, cordon, labels and network, and whether its node can be reached. Fields of a newer platform do not
        count, except inside config and change, which count whole."""
        i = self.instance
        spec = [
            self.operation_id, self.kind,
            [i.id, i.name, i.tenant_id, i.project_id, i.app, i.version, i.config, sorted(i.components.items())],
            [[m.id, m.component, m.index, [v for k, v in dataclasses.asdict(m.node).items() if k != "reachable"]]
             for m in self.members],
            list(self.targets), self.change,
        ]
        return digest(canonical(spec))


@dataclass(frozen=True)
class Choose:
    """Choose states how many members of a component are to leave; the targets of its request are the candidates."""

    component: str
    count: int


@dataclass(frozen=True)
class PlanRequest(Asked):
    """PlanRequest requests what an operation would do: the body of POST /v1/plans."""

    choose: Choose | None = None


@dataclass(frozen=True)
class PosixIdentity:
    """PosixIdentity is the account of a person or a service account in the instance's tenant; it never changes."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class ActionRequest:
    """ActionRequest is the body of POST /v1/instances/{id}/actions/{name}."""

    input: Json
    idempotency_key: str
    requester_id: str
    requester_kind: str
    requester_project: str
    instance: Instance
    members: tuple[Member, ...]
    platform: Platform
    # None unless the manifest requires identities, and for requesters that are neither a person nor a service account.
    requester_posix: PosixIdentity | None = None


def canonical(value: Json) -> str:
    """canonical writes JSON with sorted keys and no white space; 1.0 is written as 1."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digest(*parts: str) -> str:
    """digest returns a short hash over several texts."""
    sum_ = hashlib.sha256()
    for part in parts:
        sum_.update(f"{len(part)}:{part}".encode())
    return sum_.hexdigest()[:40]


def parse_json(raw: bytes) -> Json:
    """parse_json reads JSON as RFC 8259 has it: NaN and Infinity, which Python's reader takes, are refused."""

    def none(word: str) -> Json:
        raise ValueError(f"{word} is not JSON")

    try:
        return json.loads(raw.decode("utf-8"), parse_constant=none)
    except (ValueError, RecursionError) as error:
        raise malformed("body", "is not JSON") from error


def read_time(value: Json, path: str) -> float:
    """read_time reads an RFC 3339 time as seconds since 1970; an absent one is 0."""
    text = read_text(value, path)
    if text == "":
        return 0.0
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise malformed(path, "is not a time") from error
    if when.tzinfo is None:
        raise malformed(path, "has no time zone")
    return when.timestamp()


def write_time(when: float) -> str:
    """write_time writes seconds since 1970 as RFC 3339, in UTC."""
    return datetime.datetime.fromtimestamp(when, datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def read_instance(value: Json) -> Instance:
    """read_instance reads an instance."""
    o = read_object(value, "instance")
    found = read_id(o.get("id"), "instance.id")
    app = read_text(o.get("app"), "instance.app")
    if app == "":
        raise malformed("instance.app", "is missing")
    components: dict[str, int] = {}
    for n, item in enumerate(read_list(o.get("components"), "instance.components")):
        at = f"instance.components[{n}]"
        c = read_object(item, at)
        components[read_text(c.get("key"), f"{at}.key")] = read_whole(c.get("count"), f"{at}.count")
    config = o.get("config")
    texts = {name: read_text(o.get(name), f"instance.{name}") for name in
             ("name", "tenantId", "projectId", "version", "operatingMode", "controlPlaneScope")}
    return Instance(
        id=found, name=texts["name"], tenant_id=texts["tenantId"], project_id=texts["projectId"], app=app,
        version=texts["version"], config=read_object({} if config is None else config, "instance.config"),
        components=components, operating_mode=texts["operatingMode"], control_plane_scope=texts["controlPlaneScope"],
        runtime_profile=o.get("runtimeProfile"), artifacts=tuple(read_list(o.get("artifacts"), "instance.artifacts")),
    )


def read_node(value: Json, at: str) -> Node:
    """read_node reads a member's node."""
    o = read_object({} if value is None else value, at)

    def text(name: str) -> str:
        return read_text(o.get(name), f"{at}.{name}")

    def whole(name: str) -> int:
        return read_whole(o.get(name), f"{at}.{name}")

    reachable = o.get("reachable")
    return Node(
        id=text("id"), name=text("name"), address=text("address"), sealing_key=text("sealingKey"),
        allocation_id=text("allocationId"), shape=text("shape"), gpus=whole("gpus"), cpus=whole("cpus"),
        memory_mib=whole("memoryMiB"), reachable=reachable is None or read_flag(reachable, f"{at}.reachable"),
    )


def read_members(value: Json) -> tuple[Member, ...]:
    """read_members reads a list of members, each with an id of its own."""
    seen: set[str] = set()
    members = []
    for n, item in enumerate(read_list(value, "members")):
        at = f"members[{n}]"
        o = read_object(item, at)
        own = read_id(o.get("id"), f"{at}.id")
        if own in seen:
            raise malformed(f"{at}.id", "is used twice")
        seen.add(own)
        members.append(Member(
            id=own, component=read_text(o.get("componentKey"), f"{at}.componentKey"),
            index=read_whole(o.get("index"), f"{at}.index"), status=read_text(o.get("status"), f"{at}.status"),
            cordoned=read_flag(o.get("cordoned"), f"{at}.cordoned"), labels=read_texts(o.get("labels"), f"{at}.labels"),
            address=read_text(o.get("address"), f"{at}.address"), ranges=read_texts(o.get("ranges"), f"{at}.ranges"),
            node=read_node(o.get("node"), f"{at}.node"), volumes=tuple(read_list(o.get("volumes"), f"{at}.volumes")),
        ))
    return tuple(members)


def read_platform(value: Json) -> Platform:
    """read_platform reads the access to the public API."""
    o = read_object({} if value is None else value, "platform")
    url, token = read_text(o.get("graphqlUrl"), "platform.graphqlUrl"), read_text(o.get("token"), "platform.token")
    if url == "":
        raise malformed("platform.graphqlUrl", "is missing")
    if token == "":
        raise malformed("platform.token", "is missing")
    return Platform(url, token, read_time(o.get("tokenExpiresAt"), "platform.tokenExpiresAt"))


def _asked(o: Mapping[str, Json]) -> dict[str, Json]:
    kind = read_text(o.get("kind"), "kind")
    if kind not in KINDS:
        raise malformed("kind", f"{json.dumps(clip(kind, 64))} is not an operation kind")
    platform, instance, members = read_platform(o.get("platform")), read_instance(o.get("instance")), \
        read_members(o.get("members"))
    targets = tuple(read_text(t, f"targets[{n}]") for n, t in enumerate(read_list(o.get("targets"), "targets")))
    known = {m.id for m in members}
    for n, target in enumerate(targets):
        if target not in known:
            raise malformed(f"targets[{n}]", "is not one of members")
    return {
        "kind": kind, "correlation_id": read_text(o.get("correlationId"), "correlationId"), "instance": instance,
        "members": members, "targets": targets, "change": o.get("change"), "force": read_flag(o.get("force"), "force"),
        "platform": platform,
    }


def read_dispatch(value: Json, path_id: str) -> Dispatch:
    """read_dispatch reads the body of a dispatch; its id is that of the path."""
    o = read_object(value, "body")
    operation_id = read_id(o.get("operationId"), "operationId")
    if operation_id != path_id:
        raise malformed("operationId", "is not the id of the path")
    attempt, deadline = read_attempt(o), read_time(o.get("deadline"), "deadline")
    if deadline == 0.0:
        raise malformed("deadline", "is missing")
    return Dispatch(**_asked(o), operation_id=operation_id, attempt=attempt, deadline=deadline,
                    traceparent=read_text(o.get("traceparent"), "traceparent"))


def read_attempt(value: Json) -> int:
    """read_attempt reads the fence of a dispatch or a cancel."""
    attempt = read_whole(read_object(value, "body").get("attempt"), "attempt")
    if attempt < 1:
        raise malformed("attempt", "must be at least 1")
    return attempt


def read_plan(value: Json) -> PlanRequest:
    """read_plan reads the body of a plan request."""
    o = read_object(value, "body")
    asked = _asked(o)
    if o.get("choose") is None:
        return PlanRequest(**asked)
    choose = read_object(o["choose"], "choose")
    count = read_whole(choose.get("count"), "choose.count")
    if not 1 <= count <= len(asked["targets"]):
        raise malformed("choose.count", "must be at least 1 and at most the number of targets")
    return PlanRequest(**asked, choose=Choose(read_text(choose.get("componentKey"), "choose.componentKey"), count))


def read_action(value: Json, path_id: str) -> ActionRequest:
    """read_action reads the body of an action on the instance of the path."""
    o = read_object(value, "body")
    instance = read_instance(o.get("instance"))
    if instance.id != path_id:
        raise malformed("instance.id", "is not the id of the path")
    key = read_text(o.get("idempotencyKey"), "idempotencyKey")
    if not 1 <= len(key.encode("utf-8", "replace")) <= MAX_KEY:
        raise malformed("idempotencyKey", f"must be 1 to {MAX_KEY} bytes")
    who = read_object(o.get("requester") or {}, "requester")
    return ActionRequest(
        input={} if o.get("input") is None else o["input"], idempotency_key=key,
        requester_id=read_text(who.get("id"), "requester.id"),
        requester_kind=read_text(who.get("kind"), "requester.kind"),
        requester_project=read_text(who.get("projectId"), "requester.projectId"), instance=instance,
        members=read_members(o.get("members")), platform=read_platform(o.get("platform")),
        requester_posix=_posix(who.get("posix")),
    )


def _posix(value: Json) -> PosixIdentity | None:
    if value is None:
        return None
    o = read_object(value, "requester.posix")
    return PosixIdentity(
        name=read_text(o.get("name"), "requester.posix.name"), uid=read_whole(o.get("uid"), "requester.posix.uid"),
        gid=read_whole(o.get("gid"), "requester.posix.gid"),
    )
