"""Secrets of node tasks: sealed to the node that opens them, for one instance."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from pathlib import Path

from nacl.public import PublicKey, SealedBox

from .contract import MAX_SEALED
from .files import replace_file


def seal(sealing_key: str, instance_id: str, value: bytes) -> str:
    """seal encrypts a value so that only the node with this sealing key can read it, and only for a task of this
    instance. Sealing the same value twice returns two texts: both may be stored, but not compared."""
    if instance_id == "":
        raise ValueError("seal: the instance id must not be empty")
    if len(value) > MAX_SEALED:
        raise ValueError(f"seal: a value of {len(value)} bytes is larger than {MAX_SEALED}")
    try:
        raw = base64.b64decode(sealing_key, validate=True)
    except binascii.Error as error:
        raise ValueError("seal: the sealing key is not base64") from error
    if len(raw) != 32:
        raise ValueError("seal: the sealing key is not 32 bytes")
    payload = json.dumps({"instanceId": instance_id, "value": base64.b64encode(value).decode()})
    return base64.b64encode(SealedBox(PublicKey(raw)).encrypt(payload.encode())).decode()


class Keys:
    """Keys derives passwords from a key of the adapter's own, which is only on its disk: the same words give the same
    password, so that no password has to be stored."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            replace_file(path, secrets.token_bytes(32))
        self._key = path.read_bytes()

    def password(self, *words: str) -> str:
        """password returns 64 hexadecimal digits for these words, such as an instance's id and a user's name."""
        return hmac.new(self._key, json.dumps(words).encode(), hashlib.sha256).hexdigest()
