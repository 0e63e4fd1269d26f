"""One form of failure: a refusal in the GraphQL envelope, an HTTP status, and an answer that never arrived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

_LOGIN_CODES = frozenset(("UNAUTHENTICATED", "TOKEN_EXPIRED"))
_FINAL_CODES = _LOGIN_CODES | {"FORBIDDEN", "NOT_FOUND", "PERMISSION_REVOKED", "INVALID_ARGUMENT", "FAILED_PRECONDITION",
                               "DOCUMENT_INVALID", "DOCUMENT_TOO_LARGE"}
_START_OVER_CODES = frozenset(("CURSOR_EXPIRED", "CURSOR_INVALID"))


@dataclass(frozen=True)
class Reason:
    """Reason is a cause of a refusal, with the path of the input field where there is one."""

    code: str
    message: str
    path: str = ""


class PlatformError(Exception):
    """PlatformError is raised by a call that did not succeed. Read its code: one of ERROR_CODES, one of a newer
    platform, or NETWORK, when no answer arrived."""

    def __init__(self, code: str, message: str, *, correlation_id: str = "", retryable: bool = False,
                 reasons: tuple[Reason, ...] = (), retry_after: float = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.retryable, self.reasons = code, message, retryable, reasons
        self.correlation_id = correlation_id
        """correlation_id is what the platform's operators find the request by; empty when it never arrived."""
        self.retry_after = retry_after
        """retry_after is how many seconds the platform asks to be left alone; 0 where it says nothing."""

    @property
    def needs_login(self) -> bool:
        """needs_login reports whether only a new credential helps."""
        return self.code in _LOGIN_CODES

    @property
    def final(self) -> bool:
        """final reports whether a feed that ended with this error cannot be resumed."""
        return self.code in _FINAL_CODES

    @property
    def starts_over(self) -> bool:
        """starts_over reports whether a feed begins again from its beginning after this error."""
        return self.code in _START_OVER_CODES


def error_of(raw: object, retry_after: float = 0) -> PlatformError:
    """error_of reads one error of the GraphQL envelope, whatever its shape."""
    error = raw if isinstance(raw, Mapping) else {}
    said = error.get("extensions")
    extensions: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    reasons = extensions.get("reasons")
    return PlatformError(
        _text(extensions.get("code")) or "INTERNAL", _text(error.get("message")),
        correlation_id=_text(extensions.get("correlation_id")), retryable=extensions.get("retryable") is True,
        reasons=tuple(map(_reason, reasons)) if isinstance(reasons, list) else (), retry_after=retry_after,
    )


def error_of_status(status: int, correlation_id: str, retry_after: float = 0) -> PlatformError | None:
    """error_of_status returns the failure of an answer without an envelope; None for a success."""
    code, message, passes = "", "", False
    if status == 401:
        code, message = "UNAUTHENTICATED", "the credential is missing or has expired"
    elif status == 429:
        code, message, passes = "RATE_LIMITED", "too many requests", True
    elif status >= 500:
        code, message, passes = "UNAVAILABLE", f"the platform answers {status}", True
    elif status >= 300:
        code, message = "REQUEST_INVALID", f"the platform answers {status}"
    if not code:
        return None
    return PlatformError(code, message, correlation_id=correlation_id, retryable=passes, retry_after=retry_after)


def _reason(raw: object) -> Reason:
    reason = raw if isinstance(raw, Mapping) else {}
    return Reason(_text(reason.get("code")), _text(reason.get("message")), _text(reason.get("path")))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
