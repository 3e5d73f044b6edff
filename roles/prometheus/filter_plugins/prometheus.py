"""Filters of prometheus."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

_STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BCRYPT = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_COST = 10


def bcrypt_hash(password: str) -> str:
    """What Prometheus compares a password with. The salt follows from the password, which is random itself: a
    second run writes the same file."""
    import bcrypt

    digest = hashlib.sha256(f"salt of {password}".encode()).digest()[:16]
    salt = base64.b64encode(digest).decode().rstrip("=").translate(str.maketrans(_STANDARD, _BCRYPT))
    return bcrypt.hashpw(password.encode(), f"$2b${_COST}${salt}".encode()).decode()


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"bcrypt_hash": bcrypt_hash}
