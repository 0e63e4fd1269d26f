"""The adapter contract 1.1 in Python: its terms, its bounds, and how a request is refused."""

from __future__ import annotations

import math
import re
from typing import Any, Literal, Mapping

Json = Any
"""Json is a decoded JSON value."""

CONTRACT_VERSIONS = ["1.1", "1.0"]

Kind = Literal[
    "instance.create", "instance.decommission", "instance.upgrade", "instance.rollback", "members.add", "member.drain",
    "member.cordon", "member.uncordon", "member.label", "member.remove", "member.replace", "member.recover",
]
KINDS: tuple[str, ...] = (
    "instance.create", "instance.decommission", "instance.upgrade", "instance.rollback", "members.add", "member.drain",
    "member.cordon", "member.uncordon", "member.label", "member.remove", "member.replace", "member.recover",
)
TAKES_AWAY = frozenset({"instance.decommission", "member.remove"})
"""TAKES_AWAY are the kinds that accept whatever config an instance had: what is only taken away is not judged."""

State = Literal["accepted", "running", "succeeded", "failed", "canceled"]
ENDED = frozenset({"succeeded", "failed", "canceled"})
MemberStatus = Literal["joining", "active", "draining", "drained", "removed", "failed"]
Health = Literal["healthy", "degraded", "unhealthy", "unknown"]
HEALTHS = frozenset({"healthy", "degraded", "unhealthy", "unknown"})
MEMBER_STATUSES = frozenset({"joining", "active", "draining", "drained", "removed", "failed"})
Owner = Literal["adapter", "platform", "user", "node"]
VERDICTS = frozenset({"safe", "unsafe", "unknown"})

# Bounds of the contract; sizes in bytes.
MAX_BODY = 1 << 20
MAX_PAGE = 500
MAX_WAIT = 30
MAX_MEMBERS = 1024
MAX_DETAIL = 4 << 10
MAX_MESSAGE = 2 << 10
MAX_EVIDENCE = 64 << 10
MAX_WORK = 100
MAX_REASONS = 50
MAX_USAGE_RECORDS = 1000
MAX_KEY = 200
MAX_TOKEN = 8 << 10
MAX_SEALED = 256 << 10

ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Refusal(Exception):
    """Refusal is an answer that is not a success: an HTTP status and the contract's error body."""

    def __init__(self, status: int, code: str, message: str, path: str = "", retryable: bool = False) -> None:
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.message, self.path, self.retryable = status, code, message, path, retryable

    def body(self) -> dict[str, Json]:
        """body returns the contract's ErrorBody."""
        body: dict[str, Json] = {"code": self.code, "message": clip(self.message, MAX_MESSAGE)}
        if self.path:
            body["path"] = self.path
        if self.retryable:
            body["retryable"] = True
        return body


def refuse(code: str, path: str, message: str) -> Refusal:
    """refuse returns the refusal that a check or an action raises before anything was done: answered 422."""
    return Refusal(422, code, message, path)


def malformed(path: str, message: str) -> Refusal:
    """malformed returns the refusal of a request that breaks the contract's shape: answered 400, naming the field."""
    return Refusal(400, "INVALID_ARGUMENT", f"{path} {message}", path)


def missing(what: str) -> Refusal:
    """missing returns the refusal for an object that does not exist here: answered 404."""
    return Refusal(404, "NOT_FOUND", f"no such {what}")


class Failure(Exception):
    """Failure is how an operation fails: with a code, its owner, who has to fix it, and whether a retry may work."""

    def __init__(self, code: str, message: str, owner: Owner = "adapter", retryable: bool = True) -> None:
        super().__init__(message)
        self.code, self.message, self.owner, self.retryable = code, message, owner, retryable

    def body(self) -> dict[str, Json]:
        """body returns the contract's OperationError."""
        message = clip(self.message, MAX_MESSAGE)
        return {"code": self.code, "message": message, "owner": self.owner, "retryable": self.retryable}


def is_unreachable(error: BaseException) -> bool:
    """is_unreachable reports whether a node task failed because its node cannot be reached."""
    return isinstance(error, Failure) and error.code == "NODE_UNREACHABLE"


def clip(text: str, limit: int) -> str:
    """clip cuts a text to so many bytes of UTF-8 without splitting a character."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore")


def size_of(value: Json) -> int:
    """size_of returns how many bytes a value has as JSON."""
    import json

    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def bound_work(work: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """bound_work returns the first pieces of work with their texts cut to the contract's bounds."""
    bounded = []
    for piece in work[:MAX_WORK]:
        one = dict(piece)
        for name in ("kind", "id", "name", "owner"):
            one[name] = clip(str(one.get(name, "")), 200)
        one["message"] = clip(str(one.get("message", "")), 500)
        bounded.append(one)
    return bounded


# The functions below read JSON by its shape. Unknown fields pass: a newer platform may send them.


def read_object(value: Json, path: str) -> Mapping[str, Json]:
    """read_object requires an object."""
    if not isinstance(value, dict):
        raise malformed(path, "must be an object")
    return value


def read_list(value: Json, path: str, limit: int = MAX_MEMBERS) -> list[Json]:
    """read_list requires a list; an absent one is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise malformed(path, "must be a list")
    if len(value) > limit:
        raise malformed(path, f"must not be more than {limit}")
    return value


def read_text(value: Json, path: str) -> str:
    """read_text requires a text; an absent one is empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise malformed(path, "must be a text")
    return value


def read_whole(value: Json, path: str) -> int:
    """read_whole requires an integer; an absent one is 0. 1.0 is one, as in JSON."""
    if value is None:
        return 0
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**53:
        raise malformed(path, "must be an integer")
    return value


def read_flag(value: Json, path: str) -> bool:
    """read_flag requires a boolean; an absent one is false."""
    if value is not None and not isinstance(value, bool):
        raise malformed(path, "must be true or false")
    return value is True


def read_texts(value: Json, path: str) -> dict[str, str]:
    """read_texts requires an object of texts; an absent one is empty."""
    found = read_object(value if value is not None else {}, path)
    return {name: read_text(text, f"{path}.{name}") for name, text in found.items()}


def read_id(value: Json, path: str) -> str:
    """read_id requires an id."""
    found = read_text(value, path)
    if not ID_PATTERN.fullmatch(found):
        raise malformed(path, "is missing or is not an id")
    return found
