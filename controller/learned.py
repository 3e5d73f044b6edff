"""What a policy has learned, from one run to the next. Files are read and written here, never by a policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from controller.containment import PolicyError, contained
from controller.contract import Policy
from controller.guards import unguarded
from fogscale.errors import FogscaleError
from fogscale.files import read_document, write_whole

LEARNED = "learned.json"  # beside the journal, once a run has ended


def teach(policy: Policy, learned: Mapping[str, Any], name: str) -> None:
    """Gives a started policy what an earlier one has learned."""
    load = getattr(unguarded(policy), "load", None)
    if load is None:
        raise FogscaleError(f"policy '{name}' learns nothing that it could start from: leave `learned` out")
    contained(name, "load", lambda: load(learned))


def write(path: Path, policy: Policy, name: str) -> None:
    """Nothing where the policy learns nothing; whole or not at all, since a run may be killed meanwhile."""
    document = document_of(policy, name)
    if document is not None:
        write_whole(path, document)


def document_of(policy: Policy, name: str) -> str | None:
    """What a policy has learned, as it is written; None where it learns nothing."""
    save = getattr(unguarded(policy), "save", None)
    if save is None:
        return None
    learned = contained(name, "save", save)
    try:
        return json.dumps({"policy": name, "learned": learned}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise PolicyError(
            f"policy '{name}' saves what cannot be written ({error}): save texts and finite numbers"
        ) from error


def _finite(number: str) -> float:
    if not isfinite(value := float(number)):
        raise ValueError(f"{number} is no finite number")
    return value


def read(path: Path, name: str) -> dict[str, Any]:
    """What a policy of that name has learned, as it was written."""
    try:
        document = json.loads(read_document(path), parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise FogscaleError(
            f"cannot read {path}: {error.strerror}; name the {LEARNED} of a run that has ended"
        ) from error
    except (ValueError, RecursionError) as error:
        raise FogscaleError(
            f"{path} is damaged: name another {LEARNED}, or let '{name}' learn again"
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("learned"), dict):
        raise FogscaleError(f"{path} holds nothing that a policy has learned: name the {LEARNED} of a run")
    if document.get("policy") != name:
        raise FogscaleError(f"{path} is what '{document.get('policy')}' has learned, not '{name}'")
    learned: dict[str, Any] = document["learned"]
    return learned
