"""The signature of the platform's requests, checked against its published keys without asking it for each request."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import threading
import time
import urllib.request
from typing import Any, Callable, Mapping, Protocol

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from .contract import MAX_TOKEN, Refusal

TOKEN_LIFE = 60
CLOCK_SKEW = 30
KEYS_LIFE = 600
"""KEYS_LIFE is how many seconds fetched keys are used before they are fetched again."""
KEYS_STALE = 3600
"""KEYS_STALE is how many seconds fetched keys go on serving while the platform cannot be reached."""
KEYS_PAUSE = 5
"""KEYS_PAUSE is the least time between two fetches: tokens with invented key ids cause no more."""
_MAX_SET = 64 << 10
_MAX_KEYS = 32

Clock = Callable[[], float]


class Unsigned(Refusal):
    """Unsigned is a request whose token was refused. The reason is for the log; the caller does not read it."""

    def __init__(self, reason: str) -> None:
        super().__init__(401, "UNAUTHENTICATED", "the request's token was refused")
        self.reason = reason


class KeySource(Protocol):
    """KeySource finds a public key of the platform by its id; it raises KeyError when there is none."""

    def key(self, kid: str) -> VerifyKey:
        """key returns the Ed25519 public key published under kid."""


class KeySet:
    """KeySet is the platform's published key set: fetched when first needed, kept for ten minutes, and fetched again,
    at most every five seconds, when a token names a key that is not in it. So a rotation is noticed."""

    def __init__(self, url: str, now: Clock = time.monotonic) -> None:
        self._url, self._now = url, now
        self._lock = threading.Lock()
        self._keys: dict[str, VerifyKey] = {}
        self._fetched = self._tried = float("-inf")
        self._failure = ""

    def key(self, kid: str) -> VerifyKey:
        """key returns the key published under kid. One caller fetches; the others wait for its result."""
        with self._lock:
            now = self._now()
            found = self._keys.get(kid)
            if found is not None and now - self._fetched < KEYS_LIFE:
                return found
            if now - self._tried >= KEYS_PAUSE:
                self._tried = now
                self._fetch(now)
            if now - self._fetched >= KEYS_STALE:
                raise KeyError(f"the key set is not available: {self._failure}")
            if kid not in self._keys:
                raise KeyError(f"key id {kid[:64]!r} is not published")
            return self._keys[kid]

    def _fetch(self, now: float) -> None:
        try:
            with _OPENER.open(self._url, timeout=5) as answer:
                body = answer.read(_MAX_SET + 1)
                if answer.status != 200 or len(body) > _MAX_SET:
                    raise ValueError(f"status {answer.status}, {len(body)} bytes")
            self._keys, self._fetched, self._failure = parse_keys(body), now, ""
        except (OSError, ValueError) as error:
            self._failure = str(error)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))


def parse_keys(body: bytes) -> dict[str, VerifyKey]:
    """parse_keys keeps the Ed25519 public keys that have an id. Keys of other kinds are ignored."""
    keys: dict[str, VerifyKey] = {}
    for jwk in json.loads(body)["keys"]:
        kid = jwk.get("kid")
        if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(kid, str) or len(keys) == _MAX_KEYS:
            continue
        try:
            keys[kid] = VerifyKey(unbase64(str(jwk.get("x", ""))))
        except ValueError:
            continue
    if not keys:
        raise ValueError("the key set holds no Ed25519 public key with an id")
    return keys


def unbase64(text: str) -> bytes:
    """unbase64 decodes unpadded base64url, and nothing else."""
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if to_base64(raw) != text:
        raise binascii.Error("not canonical base64url")
    return raw


def to_base64(raw: bytes) -> str:
    """to_base64 encodes unpadded base64url."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def body_digest(body: bytes) -> str:
    """body_digest returns the unpadded base64url of the SHA-256 of a body; an absent body is empty."""
    return to_base64(hashlib.sha256(body).digest())


class Verifier:
    """Verifier checks request tokens. It keeps no list of used ones: a token fits one request for one minute, and
    within it every route gives a repeat the first answer."""

    def __init__(self, issuer: str, audience: str, keys: KeySource, now: Clock = time.time) -> None:
        self.issuer, self.audience, self._keys, self._now = issuer, audience, keys, now

    def open(self, authorization: str | None) -> Mapping[str, Any]:
        """open checks a token's signature and returns its claims, before the request's body is read: strangers cannot
        fill an adapter's memory with bodies. check must follow."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unsigned("no bearer token")
        if len(token) > MAX_TOKEN or token.count(".") != 2:
            raise Unsigned("not a compact JWT of at most 8 KiB")
        signed, _, signature = token.rpartition(".")
        head, _, payload = signed.partition(".")
        try:
            header, claims = json.loads(unbase64(head)), json.loads(unbase64(payload))
            raw = unbase64(signature)
        except (ValueError, RecursionError) as error:
            raise Unsigned("not a compact JWT") from error
        # The one algorithm is named here, so that "none" and HMAC with a public key cannot pass.
        if not isinstance(header, dict) or not isinstance(claims, dict) or header.get("alg") != "EdDSA":
            raise Unsigned("not an EdDSA JWT")
        if "crit" in header:
            raise Unsigned("the token's header has crit, which this adapter does not support")
        try:
            self._keys.key(str(header.get("kid", ""))).verify(signed.encode(), raw)
        except KeyError as error:
            raise Unsigned(str(error)) from error
        except (BadSignatureError, ValueError) as error:
            raise Unsigned("the signature does not verify") from error
        return claims

    def check(self, claims: Mapping[str, Any], method: str, target: str, body: bytes) -> None:
        """check checks the claims of a signed token against the request that carries it."""
        now, issued, expires = self._now(), _number(claims, "iat"), _number(claims, "exp")
        wrong = [
            (claims.get("iss") != self.issuer, f"iss is not {self.issuer!r}"),
            (claims.get("aud") != self.audience, f"aud is not {self.audience!r}"),
            (not claims.get("jti"), "jti is missing"),
            (now > expires + CLOCK_SKEW, "the token has expired"),
            (now < issued - CLOCK_SKEW, "the token is issued in the future"),
            (expires - issued > TOKEN_LIFE, "the token lives too long"),
            (claims.get("htm") != method, "htm does not match"),
            (claims.get("htu") != target, "htu does not match"),
            (not hmac.compare_digest(str(claims.get("bd", "")).encode(), body_digest(body).encode()),
             "bd does not match the body"),
        ]
        for is_wrong, reason in wrong:
            if is_wrong:
                raise Unsigned(reason)


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unsigned(f"{name} is missing")
    return value
