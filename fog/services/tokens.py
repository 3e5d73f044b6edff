"""Tokens of Kubernetes' service accounts, as far as their holder can read them: whose, and until when.

Nothing here judges a signature: the API server does.
"""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass

LAST_S = 253_402_300_800.0  # when the year 9999 is over: no calendar goes on


@dataclass(frozen=True)
class Claims:
    namespace: str
    account: str
    uid: str  # of the account: one of the same name that was made anew is another one
    issued_s: float
    expires_s: float

    @property
    def lasts_s(self) -> float:
        return self.expires_s - self.issued_s

    def is_over(self, now_s: float) -> bool:
        return now_s >= self.expires_s

    def is_due(self, now_s: float) -> bool:
        """Whether half of its time is over, so that another should be asked for."""
        return now_s >= self.issued_s + self.lasts_s / 2


def claims(token: str) -> Claims | None:
    """None where it is no such token, or one that never ends."""
    try:
        body = token.split(".")[1]
        told = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        of = told["kubernetes.io"]
        account = of["serviceaccount"]
        issued_s, expires_s = float(told["iat"]), float(told["exp"])
        if not (0 <= issued_s < LAST_S and 0 <= expires_s < LAST_S):
            return None
        return Claims(of["namespace"], account["name"], account["uid"], issued_s, expires_s)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def token_in(kubeconfig: str) -> str:
    """Of a kubeconfig as the role `controller` writes it; empty where it holds none."""
    try:
        return str(json.loads(kubeconfig)["users"][0]["user"]["token"])
    except (IndexError, KeyError, TypeError, ValueError):
        return ""


def holds(token: str, uid: str, lasts_s: float, now_s: float | None = None) -> bool:
    """Whether another run of the playbook can leave a token alone: of the account with that uid, for no
    longer than wanted, and not due."""
    told = claims(token)
    now_s = time.time() if now_s is None else now_s
    return told is not None and told.uid == uid and told.lasts_s <= lasts_s and not told.is_due(now_s)
