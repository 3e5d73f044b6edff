"""What a campaign has simulated, kept in a folder: one Parquet file per run, there whole or not at all.

A file is named after everything that decides what is in it: the run's settings, the code, the versions of
what computes, the contents of files that the workload names. So whatever changes, no stale row is ever used.
A campaign that has all its rows removes the files of other runs from its folder, which is therefore never
larger than the last campaign; `--fresh` empties it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fogscale.errors import FogscaleError
from fogscale.files import opened_lock

_COMPUTE = ("numpy", "scipy")
_SIMULATES = ("controller", "workloads", "fogscale/settings.py", "analysis/schema.py", "analysis/campaign.py")
_LOCK = ".in_use"


@dataclass(frozen=True)
class KeptRows:
    folder: Path

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.parquet"

    def missing(self, keys: Iterable[str]) -> set[str]:
        there = {path.stem for path in self.folder.glob("*.parquet")}
        return set(keys) - there

    def write(self, key: str, rows: pa.RecordBatch) -> None:
        """By whoever simulated it. Under another name first: what has its name is whole."""
        unfinished = self.folder / f".{key}.{os.getpid()}.unfinished"
        pq.write_table(pa.Table.from_batches([rows]), unfinished, compression="zstd")
        unfinished.rename(self.path(key))

    def keep_only(self, keys: Iterable[str]) -> None:
        """Without what other runs and killed processes left."""
        wanted = {self.path(key).name for key in keys}
        for path in (*self.folder.glob("*.parquet"), *self.folder.glob(".*.unfinished")):
            if path.name not in wanted:
                path.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While the block runs, no other campaign may use the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = opened_lock(self.folder / _LOCK)
        except OSError as error:
            raise FogscaleError(
                f"cannot write into {self.folder}: {error.strerror}; choose another folder with --out"
            ) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go when the process ends
            except OSError as error:
                raise FogscaleError(
                    f"{self.folder} is in use by another fogscale: wait for it, or use --out"
                ) from error
            yield


def keys_of(runs: Sequence[str]) -> list[str]:
    """Of each run, given as a JSON document."""
    code, contents = code_version(), cache(_contents)  # a file that many runs name is read once
    keys = []
    for run in runs:
        settings = json.loads(run)
        files = [contents(text) for text in _texts(settings.get("workload"))]
        parts = (code, _code_of_others(settings), *files, run)
        keys.append(hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32])
    return keys


@cache
def code_version(parts: tuple[str, ...] = _SIMULATES) -> str:
    """Another one wherever a line of these, by default of what simulates, or what it computes with, is
    another. What analyses may change: rows of samples are as good for it."""
    versions = [platform.python_version(), *(f"{name} {version(name)}" for name in _COMPUTE)]
    digest = hashlib.sha256("\n".join(versions).encode())
    root = Path(__file__).resolve().parent.parent
    for part in parts:
        for path in sorted((root / part).rglob("*")) if (root / part).is_dir() else [root / part]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _texts(below)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from _texts(below)


def _contents(text: str) -> str:
    """Of a file; of a folder, what it holds and when each of it was last changed; nothing of what is none."""
    path = Path(text)
    try:
        if path.is_file():
            return hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_dir():
            below = sorted(path.rglob("*"))
            return ",".join(f"{each}:{each.stat().st_size}:{each.stat().st_mtime_ns}" for each in below)
    except (OSError, ValueError):
        pass  # no path after all, or one that the run will complain about
    return ""


def _code_of_others(settings: Mapping[str, Any]) -> str:
    """The code of a policy or testbed that another package, or the script itself, brings along."""
    from controller import policies, testbeds

    policy, testbed = settings.get("variant_of") or settings.get("policy"), settings.get("testbed")
    kind = testbed.get("kind") if isinstance(testbed, Mapping) else None
    found = [policies.policy_class(policy)] if policy in policies.names() else []
    found += [type(testbeds.kind_of(kind))] if kind in testbeds.names() else []
    modules = {each.__module__ for each in found}
    return "\n".join(_code_of(name) for name in sorted(modules) if not name.startswith("controller."))


@cache
def _code_of(module: str) -> str:
    """Of all its package; where there is no file, as at a prompt, of no other session."""
    package = sys.modules[module.partition(".")[0]]
    file = getattr(package, "__file__", None)
    if file is None:
        return f"{platform.node()} {os.getpid()}"
    path = Path(file)
    sources = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    digest = hashlib.sha256()
    for source in sources:
        with suppress(OSError):
            digest.update(source.read_bytes())
    return digest.hexdigest()
