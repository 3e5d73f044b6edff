"""Tokens of a service account whose times are chosen; nobody signed them."""

from __future__ import annotations

import base64
import json

WEEK_S = 7 * 24 * 3600.0


def token(issued_s: float = 1000.0, lasts_s: float = WEEK_S, uid: str = "u1") -> str:
    told = {
        "iat": issued_s,
        "exp": issued_s + lasts_s,
        "kubernetes.io": {"namespace": "fogscale", "serviceaccount": {"name": "controller", "uid": uid}},
    }
    parts = (b"{}", json.dumps(told).encode(), b"signature")
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
