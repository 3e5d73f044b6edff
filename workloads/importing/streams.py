"""The bytes of one raw file, chunk by chunk: a part of a plain file, or a gunzipped one as far as it goes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from workloads.importing.reasons import CORRUPT_GZIP, TRUNCATED_GZIP

CHUNK_BYTES = 1 << 22
GZIP_MAGIC = b"\x1f\x8b"

_MEMBER = GZIP_MAGIC + b"\x08"  # every member's first bytes: deflate is the only method there is
_FEED_BYTES = 1 << 16  # a chunk of compressed bytes; also what is gone through again to find a corrupt one
_SEARCH_BYTES = 1 << 20


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


class Piece(NamedTuple):
    """Some of a gzip file's content, and what is wrong with the file right after it."""

    content: bytes
    damage: str | None = None


def gunzipped(path: str) -> Iterator[Piece]:
    """All of a gzip file's content that can be had. What cannot be read on is left aside, until the next
    member of the file begins."""
    with Path(path).open("rb") as file:
        inflate = zlib.decompressobj(wbits=31)
        begun: int | None = None  # where the member begins
        compressed = b""
        while compressed := compressed or file.read(_FEED_BYTES):
            if begun is None:
                compressed = compressed.lstrip(b"\0")  # a file may be padded after its last member
                if not compressed:
                    continue
                begun, inflate = file.tell() - len(compressed), zlib.decompressobj(wbits=31)
            snapshot = inflate.copy()
            try:
                yield Piece(inflate.decompress(compressed, CHUNK_BYTES))
            except zlib.error:
                content, length = _readable(snapshot, compressed)
                yield Piece(content, CORRUPT_GZIP)
                broken = file.tell() - len(compressed) + length
                if (following := _next_member(file, max(begun + 1, broken - _FEED_BYTES))) is None:
                    return
                file.seek(following)
                begun, compressed = None, b""
                continue
            compressed = inflate.unconsumed_tail or inflate.unused_data
            begun = None if inflate.eof else begun
        if begun is not None:
            yield Piece(b"", TRUNCATED_GZIP)


def _readable(inflate: zlib._Decompress, compressed: bytes) -> tuple[bytes, int]:
    """What comes out byte by byte until the corrupt one, and how many bytes that took."""
    content = bytearray()
    for position in range(len(compressed)):
        try:
            content += inflate.decompress(compressed[position : position + 1])
        except zlib.error:
            return bytes(content), position
    return bytes(content), len(compressed)


def _next_member(file: BinaryIO, start: int) -> int | None:
    """Where the next member begins: a little before the corrupt byte too, since a member that was cut off is
    only noticed when what follows it makes no sense any more."""
    overlap = len(_MEMBER) - 1
    file.seek(start)
    at, found = start, file.read(_SEARCH_BYTES)
    while len(found) > overlap:
        candidate = -1
        while (candidate := found.find(_MEMBER, candidate + 1)) >= 0:
            if _is_member(file, at + candidate):
                return at + candidate
        at += len(found) - overlap
        file.seek(at)
        found = file.read(_SEARCH_BYTES)
    return None


def _is_member(file: BinaryIO, start: int) -> bool:
    """Whether the bytes there make sense, which those that only look like a header hardly do for long."""
    file.seek(start)
    inflate = zlib.decompressobj(wbits=31)
    try:
        content = inflate.decompress(file.read(_FEED_BYTES), CHUNK_BYTES)
    except zlib.error:
        return False
    return bool(content) or inflate.eof
