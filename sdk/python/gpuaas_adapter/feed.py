"""The change feed: the newest status of every operation, each with the version of its last change.

Only the newest matters, so the feed needs no history and a slow reader costs nothing. A version is never used twice,
not even after a kill: the counter starts above a ceiling on disk, which is raised in blocks. So a cursor outlives a
restart."""

from __future__ import annotations

import re
import threading
import time
from typing import Any, Callable

from .contract import ENDED, MAX_BODY, MAX_PAGE, malformed, size_of

Status = dict[str, Any]

BLOCK = 1 << 16
"""BLOCK is how many versions one write to the disk reserves."""
_PAGE_BYTES = MAX_BODY - (64 << 10)
_CURSOR = re.compile(r"([0-9A-Za-z]{1,64}):([0-9]{1,15})(!?)")


class Feed:
    """Feed hands out pages of changes, to any number of readers."""

    def __init__(self, epoch: str, ceiling: int, raise_ceiling: Callable[[int], None]) -> None:
        self._changed = threading.Condition()
        self._items: dict[str, tuple[int, Status]] = {}
        self._epoch, self._next, self._ceiling, self._raise = epoch, ceiling, ceiling, raise_ceiling
        self._stopped = False
        self._reserve()

    def _reserve(self) -> None:
        self._raise(self._next + BLOCK)
        self._ceiling = self._next + BLOCK

    def put(self, status: Status) -> None:
        """put publishes a status under a new version and wakes the readers."""
        with self._changed:
            if self._next + BLOCK // 2 >= self._ceiling:
                try:
                    self._reserve()
                except OSError:
                    if self._next + 1 >= self._ceiling:
                        raise
            self._next += 1
            self._items[status["operationId"]] = (self._next, status)
            self._changed.notify_all()

    def mark(self) -> int:
        """mark returns a version that no version so far exceeds; it is journalled with a terminal status."""
        with self._changed:
            return self._ceiling + BLOCK

    def restore(self, status: Status, mark: int) -> None:
        """restore puts back a terminal status that an earlier process journalled. A reader that has read it may read it
        again; no other reader can miss it."""
        with self._changed:
            self._items[status["operationId"]] = (min(mark, self._next), status)

    def get(self, operation: str) -> Status | None:
        """get returns the newest status of an operation."""
        with self._changed:
            item = self._items.get(operation)
            return item[1] if item else None

    def drop(self, operation: str) -> None:
        """drop forgets an operation."""
        with self._changed:
            self._items.pop(operation, None)

    def stop(self) -> None:
        """stop answers all waiting readers."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def wait(self, cursor: str, seconds: float) -> dict[str, Any]:
        """wait returns the page after a cursor, as soon as it is not empty or when the time has expired. A reader with
        a foreign cursor needs a new one, and is answered at once."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                page, same = self._page(cursor)
                left = end - time.monotonic()
                if page["operations"] or not same or left <= 0 or self._stopped:
                    return page
                self._changed.wait(left)

    def _page(self, cursor: str) -> tuple[dict[str, Any], bool]:
        after, same = self._parse(cursor)
        items = sorted((item for item in self._items.values()
                        if item[0] > after and (same or item[1]["state"] not in ENDED)), key=lambda item: item[0])
        operations: list[Status] = []
        last, size = after, 0
        for version, status in items:
            size += size_of(status)
            if len(operations) == MAX_PAGE or (operations and size > _PAGE_BYTES):
                break
            operations.append(status)
            last = version
        whole = len(operations) == len(items)
        # A foreign cursor's page omits ended operations; only one that has all others moves the cursor past them.
        if whole and not same:
            last = max(last, self._next)
        cursor = f"{self._epoch}:{last}{'' if same or whole else '!'}"
        return {"epoch": self._epoch, "cursor": cursor, "operations": operations}, same

    def _parse(self, cursor: str) -> tuple[int, bool]:
        """Cursors are EPOCH:VERSION. One ending in "!" continues a first page that did not contain everything."""
        if cursor == "":
            return 0, False
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise malformed("after", "is not a cursor of this feed")
        after = int(found[2])
        if found[1] != self._epoch or after > self._next:
            return 0, False
        return after, found[3] == ""
