"""The journal keeps the operations of an adapter on disk, so that a controller that is killed forgets nothing.

    DIR/lock                 locked while a process uses the directory
    DIR/epoch                names the change feed
    DIR/ceiling              versions below it may have been used
    DIR/operations/ID.jsonl  one record a line; the first holds the dispatch
    DIR/tombstones/ID        the attempt up to which the operation never begins

A kill can tear only the last line, and nothing was done that a torn line records. When an operation has ended its file
is rewritten without steps, checkpoints and token; until then it holds the operation's narrow, short-lived token, so the
directory is readable by its owner alone."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from .contract import ID_PATTERN
from .files import Torn, append_line, line_of, read_lines, replace_file

Record = dict[str, Any]
"""Record is one line; only what changed is in it.

at, began      when, in seconds since 1970
dispatch       the body that began the operation or raised its attempt; hash is its identity
generation     the attempt with which the run began; a new one forgets steps and checkpoints
status, mark   the newest status; beside a terminal one the feed's mark
step, spec     what a step is about to send
saved          checkpoints
canceled, committed, stillborn   a cancel was asked for; it is too late for one; the dispatch met a tombstone"""


class Journal:
    """Journal is the folder of one adapter; opening it fails while another process uses it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("operations", "tombstones"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
        self._held = open(folder / "lock", "a+b")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._held.close()
            raise RuntimeError(f"{folder} is in use by another process") from error
        self._lock = threading.Lock()
        self._torn: dict[str, int] = {}

    def close(self) -> None:
        """close frees the folder for another process."""
        self._held.close()

    def _path(self, operation: str) -> Path:
        return self._folder / "operations" / f"{operation}.jsonl"

    def epoch(self) -> str:
        """epoch returns the feed's name, created when the folder is new."""
        path = self._folder / "epoch"
        if not path.exists():
            replace_file(path, secrets.token_hex(12).encode())
        return path.read_text().strip()

    def ceiling(self) -> int:
        """ceiling returns the version that the feed continues from."""
        path = self._folder / "ceiling"
        return int(path.read_text()) if path.exists() else 0

    def raise_ceiling(self, ceiling: int) -> None:
        """raise_ceiling stores the version that the feed continues from after a restart."""
        replace_file(self._folder / "ceiling", str(ceiling).encode())

    def ids(self) -> list[str]:
        """ids lists the journalled operations."""
        stems = (path.stem for path in (self._folder / "operations").glob("*.jsonl"))
        return [stem for stem in stems if ID_PATTERN.fullmatch(stem)]

    def read(self, operation: str) -> list[Record]:
        """read returns the records of one operation."""
        return read_lines(self._path(operation))

    def append(self, operation: str, record: Record, durable: bool) -> None:
        """append adds a record; a durable one is on disk when the call returns."""
        with self._lock:
            end = self._torn.get(operation)
        try:
            append_line(self._path(operation), record, durable, end)
        except Torn as torn:
            with self._lock:
                self._torn.pop(operation, None)
                if not torn.whole:
                    self._torn[operation] = torn.end
            raise
        with self._lock:
            self._torn.pop(operation, None)

    def replace(self, operation: str, record: Record) -> None:
        """replace rewrites an operation's file with one record."""
        replace_file(self._path(operation), line_of(record))
        with self._lock:
            self._torn.pop(operation, None)

    def remove(self, operation: str) -> None:
        """remove deletes the records of an operation."""
        self._path(operation).unlink(missing_ok=True)

    def bury(self, operation: str, attempt: int) -> None:
        """bury stores a tombstone, on disk when the call returns."""
        replace_file(self._folder / "tombstones" / operation, str(attempt).encode())

    def exhume(self, operation: str) -> None:
        """exhume deletes a tombstone; a missing one is not an error."""
        (self._folder / "tombstones" / operation).unlink(missing_ok=True)

    def tombstones(self) -> dict[str, tuple[int, float]]:
        """tombstones returns the stored ones: by operation the attempt, and when it was stored."""
        found = {}
        for path in (self._folder / "tombstones").iterdir():
            if ID_PATTERN.fullmatch(path.name):
                found[path.name] = (int(path.read_text()), path.stat().st_mtime)
        return found
