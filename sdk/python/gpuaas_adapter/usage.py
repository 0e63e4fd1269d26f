"""A durable list of usage records, for adapters that count usage while they act. A record is on disk before it is
answered, and its id makes it unique: a record that is added again is not counted again."""

from __future__ import annotations

import re
import secrets
import threading
import time
from pathlib import Path
from typing import Any, Iterable, Mapping

from .contract import MAX_USAGE_RECORDS
from .files import append_line, read_lines
from .types import write_time

_INSTANCE = re.compile(r"[A-Za-z0-9_-]{1,64}")


class UsageLog:
    """UsageLog keeps the records of instances in a folder, one file for each instance; its first line is the epoch."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._lock = folder, threading.Lock()
        self._books: dict[str, tuple[str, list[dict[str, Any]], set[str]]] = {}
        self._read: dict[str, float] = {}

    def _open(self, instance: str) -> tuple[str, list[dict[str, Any]], set[str]]:
        if instance in self._books:
            return self._books[instance]
        path = self._path(instance)
        lines = read_lines(path) if path.exists() else []
        if not lines:
            lines = [secrets.token_hex(4)]
            append_line(path, lines[0], durable=True)
        book = (str(lines[0]), lines[1:], {record["id"] for record in lines[1:]})
        self._books[instance] = book
        return book

    def _path(self, instance: str) -> Path:
        if not _INSTANCE.fullmatch(instance):
            raise ValueError(f"{instance!r} is not an instance's id")
        return self._folder / f"{instance}.usage"

    def add(self, instance: str, *records: Mapping[str, Any]) -> None:
        """add writes records that are not in the log yet, and returns when they are on the disk."""
        with self._lock:
            self._add(instance, records)

    def _add(self, instance: str, records: Iterable[Mapping[str, Any]]) -> None:
        _, held, known = self._open(instance)
        for record in records:
            if record["id"] not in known:
                append_line(self._path(instance), dict(record), durable=True)
                held.append(dict(record))
                known.add(record["id"])

    def due(self, instance: str, seconds: float = 10) -> bool:
        """due reports whether an instance's counters are due to be read, and records that they are read now."""
        with self._lock:
            now = time.monotonic()
            if now - self._read.get(instance, float("-inf")) < seconds:
                return False
            self._read[instance] = now
            return True

    def count(self, instance: str, member: str, dimension: str, source: str, total: int) -> None:
        """count adds the counter's increase since its last reading. source names one life of the counter, such as a
        process that counts from 0. The record's id consists of source and total, so the same reading is the same
        record, and the counter's last reading is found again after a kill."""
        now = write_time(time.time())
        with self._lock:
            _, held, _ = self._open(instance)
            seen = [record for record in held if str(record["id"]).rpartition(".")[0] == source]
            before, begin = (int(str(seen[-1]["id"]).rpartition(".")[2]), seen[-1]["to"]) if seen else (0, now)
            if total > before:
                self._add(instance, [{"id": f"{source}.{total}", "dimension": dimension, "memberId": member,
                                      "quantity": str(total - before), "from": begin, "to": now}])

    def records(self, instance: str) -> list[dict[str, Any]]:
        """records returns all records of an instance, in the order in which they were added."""
        with self._lock:
            return list(self._open(instance)[1])

    def page(self, instance: str, after: str) -> dict[str, Any]:
        """page returns the records after a cursor. A cursor of another log, or an empty one, begins at the start."""
        with self._lock:
            epoch, held, _ = self._open(instance)
            own, _, number = after.partition(".")
            begin = min(int(number), len(held)) if own == epoch and number.isdecimal() else 0
            end = min(begin + MAX_USAGE_RECORDS, len(held))
            return {"cursor": f"{epoch}.{end}", "count": end, "records": held[begin:end]}
