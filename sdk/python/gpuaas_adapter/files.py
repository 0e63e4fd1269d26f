"""Files that survive a kill: written whole or not at all, and on disk when the call returns."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from .contract import Json


def sync_dir(folder: Path) -> None:
    """sync_dir writes the names of a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes) -> None:
    """replace_file leaves either the old or the new content, never a mixture."""
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_dir(path.parent)


def line_of(value: Json) -> bytes:
    """line_of is a value as one line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def append_line(path: Path, value: Json, durable: bool, end: int | None = None) -> None:
    """append_line adds a line of JSON; a durable one is on disk when the call returns. Nothing stays of a line that the
    disk refused, such as when it is full. end is the file's end where a part of such a line follows."""
    fresh = not path.exists()
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        if end is not None:
            os.ftruncate(handle, end)
        start = os.fstat(handle).st_size
        try:
            _write(handle, line_of(value))
            if durable:
                os.fsync(handle)
        except OSError as error:
            raise Torn(start, _cut(handle, start), error) from error
    finally:
        os.close(handle)
    if durable and fresh:
        sync_dir(path.parent)


def _write(handle: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(handle, raw):]


def _cut(handle: int, start: int) -> bool:
    try:
        os.ftruncate(handle, start)
    except OSError:
        return False
    return True


class Torn(OSError):
    """Torn is a line that was not written; whole reports whether the file holds only whole lines, up to end."""

    def __init__(self, end: int, whole: bool, cause: OSError) -> None:
        super().__init__(cause.errno, f"the line was not written: {cause.strerror}")
        self.end, self.whole = end, whole


def read_lines(path: Path) -> list[Json]:
    """read_lines parses a file of JSON lines and cuts off a last line that a kill has torn."""
    raw = path.read_bytes()
    whole = raw.rfind(b"\n") + 1
    if whole < len(raw):
        os.truncate(path, whole)
    return [json.loads(line) for line in raw[:whole].splitlines() if line]
