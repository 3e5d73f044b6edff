"""The bytes of one raw file, chunk by chunk: a part of a plain file, or a gunzipped one as far as it goes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workloads.importing.reasons import CORRUPT_GZIP, TRUNCATED_GZIP

CHUNK_BYTES = 1 << 22
GZIP_MAGIC = b"\x1f\x8b"

_FEED_BYTES = 1 << 16  # a chunk of compressed bytes; also what is gone through again to find a corrupt one


class Part(NamedTuple):
    """What one task reads: the lines or records that begin in these bytes of a file."""

    file: int
    path: str
    start: int
    end: int
    is_gzip: bool


def is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def parts_of(path: Path, file: int, part_bytes: int, record_bytes: int = 1) -> list[Part]:
    """A plain file can be read from anywhere, a gzip only from its start."""
    size = path.stat().st_size
    if is_gzip(path):
        return [Part(file, str(path), 0, size, True)]
    step = max(1, part_bytes // record_bytes) * record_bytes
    return [Part(file, str(path), start, min(start + step, size), False) for start in range(0, size, step)]


class Gunzip:
    """An iterator over the content of a gzip file. What is wrong with the file ends it and is then told by
    `damage`; everything before is given."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.damage: str | None = None
        self._member = _Member()

    def __iter__(self) -> Iterator[bytes]:
        with Path(self.path).open("rb") as file:
            while compressed := file.read(_FEED_BYTES):
                yield from self._gunzipped(compressed)
                if self.damage is not None:
                    return
        if not self._member.is_complete:
            self.damage = TRUNCATED_GZIP

    def _gunzipped(self, compressed: bytes) -> Iterator[bytes]:
        while compressed:
            if self._member.inflate.eof:
                self._member = _Member(is_first=False)
            if not self._member.has_begun and not self._member.is_first:
                compressed = compressed.lstrip(b"\0")  # a file may be padded after its last member
                if not compressed:
                    return
            self._member.has_begun = True
            inflate = self._member.inflate
            snapshot = inflate.copy()
            try:
                yield inflate.decompress(compressed, CHUNK_BYTES)
            except zlib.error:
                self.damage = CORRUPT_GZIP
                yield _readable(snapshot, compressed)
                return
            compressed = inflate.unconsumed_tail or inflate.unused_data


class _Member:
    """One gzip stream; a file may hold several in a row."""

    def __init__(self, is_first: bool = True) -> None:
        self.inflate = zlib.decompressobj(wbits=31)
        self.is_first = is_first
        self.has_begun = False

    @property
    def is_complete(self) -> bool:
        return self.inflate.eof or not self.has_begun


def _readable(inflate: zlib._Decompress, compressed: bytes) -> bytes:
    """What comes out byte by byte until the corrupt one."""
    content = bytearray()
    try:
        for position in range(len(compressed)):
            content += inflate.decompress(compressed[position : position + 1])
    except zlib.error:
        pass
    return bytes(content)
