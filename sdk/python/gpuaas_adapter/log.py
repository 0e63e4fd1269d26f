"""The structured log: one JSON object a line. Secrets that were registered are masked wherever they occur."""

from __future__ import annotations

import collections
import datetime
import json
import logging
import re
import sys
import threading
from typing import Any, MutableMapping, TextIO

_MASK = "[hidden]"
_MAX_SECRETS = 8192
_TOKENS = re.compile(r"(?i)bearer +[A-Za-z0-9._~+/=-]{12,}|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class _Secrets:
    """_Secrets holds the newest secrets of this process: platform tokens and redeemed values."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[str, None] = collections.OrderedDict()

    def add(self, value: str) -> None:
        if len(value) < 6:  # it would mask ordinary words
            return
        with self._lock:
            self._known[value] = None
            self._known.move_to_end(value)
            if len(self._known) > _MAX_SECRETS:
                self._known.popitem(last=False)

    def mask(self, text: str) -> str:
        text = _TOKENS.sub(_MASK, text)
        with self._lock:
            known = list(self._known)
        for value in known:
            if value in text:
                text = text.replace(value, _MASK)
        return text


_secrets = _Secrets()


def hide(value: str) -> None:
    """hide registers a secret, which no later line of the log shows."""
    _secrets.add(value)


def mask(text: str) -> str:
    """mask returns a text without the registered secrets and without bearer tokens."""
    return _secrets.mask(text)


class Formatter(logging.Formatter):
    """Formatter writes a record as one line of JSON, with the fields that the logger carries."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return mask(json.dumps(line, default=str))


class Log(logging.LoggerAdapter[logging.Logger]):
    """Log is a logger with fields: log.bind(operation="op_1").info("running", attempt=2)."""

    def __init__(self, logger: logging.Logger, **fields: Any) -> None:
        super().__init__(logger, fields)

    def bind(self, **fields: Any) -> Log:
        """bind returns a logger with more fields."""
        return Log(self.logger, **{**(self.extra or {}), **fields})

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """process joins the fields of a call to those of the logger."""
        own = {name: kwargs.pop(name) for name in list(kwargs) if name not in ("exc_info", "stack_info", "stacklevel")}
        kwargs["extra"] = {"fields": {**(self.extra or {}), **own}}
        return msg, kwargs


def new_log(level: str = "info", out: TextIO | None = None, **fields: Any) -> Log:
    """new_log returns the log of a program, on standard error."""
    number = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}.get(level.lower())
    if number is None:
        raise ValueError(f"log level {level!r} is not one of debug, info, warn, error")
    logger = logging.Logger("gpuaas_adapter", number)  # not the global one: two adapters of one process share no logger
    handler = logging.StreamHandler(out or sys.stderr)
    handler.setFormatter(Formatter())
    logger.addHandler(handler)
    return Log(logger, **fields)
