"""A request: the text of an operation and its variables, with the type of the answer."""

from __future__ import annotations

import uuid
from typing import Any, Generic, Mapping, Sequence, TypeVar

Data = TypeVar("Data")


class Document:
    """Document is the text of an operation. older is the form that a platform of version 1 of the API serves, without
    newer fields; None where that is the same, or where the operation needs a newer platform."""

    def __init__(self, name: str, text: str, fragments: Sequence[str] = (), older: str | None = None) -> None:
        self.name, self.text, self.older = name, "\n".join((text, *fragments)), older


class Request(Generic[Data]):
    """Request is one operation with its variables. Data is the type of the platform's answer."""

    def __init__(self, document: Document, variables: Mapping[str, Any]) -> None:
        self.document, self.variables = document, dict(variables)


class Query(Request[Data]):
    """Query reads."""


class Mutation(Request[Data]):
    """Mutation changes something, once: its input gets an idempotency key when the request is created, unless the
    caller gave one, so that the same request sent again after a lost answer does nothing twice. A program that may die
    in between gives a key that it has stored."""

    def __init__(self, document: Document, variables: Mapping[str, Any], keyed: bool = False) -> None:
        super().__init__(document, variables)
        if keyed:
            self.variables["input"] = {"idempotencyKey": str(uuid.uuid4()), **self.variables["input"]}


class Subscription(Request[Data]):
    """Subscription is a feed: Client.subscribe reads it."""


def given(variables: Mapping[str, Any]) -> dict[str, Any]:
    """given omits the variables that the caller omitted."""
    return {name: value for name, value in variables.items() if value is not None}
