"""Secrets of node tasks: sealed to the node that opens them, for one instance."""

from __future__ import annotations

import base64
import binascii
import json

from nacl.public import PublicKey, SealedBox

from .contract import MAX_SEALED


def seal(sealing_key: str, instance_id: str, value: bytes) -> str:
    """seal encrypts a value so that only the node with this sealing key can read it, and only for a task of this
    instance. Sealing the same value twice gives two texts: both may be written down, neither may be compared."""
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
