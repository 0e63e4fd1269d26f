"""The known instances: each as it was last dispatched, without the members that have left since."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from .contract import ENDED
from .feed import Status
from .operation import Operation
from .types import Dispatch, Instance, Member


@dataclass
class Known:
    """Known is one instance; gone reports that it was decommissioned."""

    operation: str
    instance: Instance
    members: tuple[Member, ...]
    gone: bool = False


class Instances:
    """Instances is guarded by its owner's lock."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}

    def learn(self, operation: str, dispatch: Dispatch) -> None:
        """learn stores the members of a dispatch. Whether a node can be reached is not kept: it was true only then."""
        members = tuple(dataclasses.replace(m, node=dataclasses.replace(m.node, reachable=True))
                        for m in dispatch.members)
        self.known[dispatch.instance.id] = Known(operation, dispatch.instance, members)

    def settle(self, dispatch: Dispatch, status: Status) -> None:
        """settle forgets what an ended operation removed: its instance when that was decommissioned, else the members
        that left, and those of an add that did not succeed."""
        one = self.known.get(dispatch.instance.id)
        if one is None or status["state"] not in ENDED:
            return
        one.gone = one.gone or (dispatch.kind == "instance.decommission" and status["state"] == "succeeded")
        left = {m["id"] for m in status["members"] if m["status"] == "removed"}
        if dispatch.kind == "members.add" and status["state"] != "succeeded":
            left.update(dispatch.targets)
        one.members = tuple(m for m in one.members if m.id not in left)

    def recall(self, operations: list[Operation]) -> None:
        """recall goes through the beginnings and ends of loaded operations in the order in which they happened."""
        moments: list[tuple[float, int, Operation]] = []
        for operation in operations:
            if operation.stillborn:  # it was canceled before it began
                continue
            moments.append((operation.began, 0, operation))
            moments.append((max(operation.touched, operation.began), 1, operation))
        for _, end, operation in sorted(moments, key=lambda moment: moment[:2]):
            if end:
                self.settle(operation.asked, operation.status)
            else:
                self.learn(operation.id, operation.asked)

    def newest(self, operation: Operation) -> bool:
        """newest reports whether an operation is the last source for an instance that still exists."""
        one = self.known.get(operation.asked.instance.id)
        return one is not None and one.operation == operation.id and not one.gone

    def drop(self, operation: Operation) -> None:
        """drop forgets an instance with the operation that is its source."""
        one = self.known.get(operation.asked.instance.id)
        if one is not None and one.operation == operation.id:
            del self.known[operation.asked.instance.id]
