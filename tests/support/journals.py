"""Journals that somebody has worked on."""

from controller.journal import chained
from controller.recording import CHAIN


def older(journal: bytes) -> bytes:
    """As it would have been written before lines had checksums."""
    first, *others = unchained(journal)
    return b"".join(line + b"\n" for line in (first.replace(b'"version":2', b'"version":1'), *others))


def rechained(journal: bytes) -> bytes:
    """With checksums that fit what the lines now say."""
    lines, before = [], 0
    for line in unchained(journal):
        line, before = chained(line, before)
        lines.append(line + b"\n")
    return b"".join(lines)


def unchained(journal: bytes) -> list[bytes]:
    return [_without_checksum(line) for line in journal.splitlines()]


def _without_checksum(line: bytes) -> bytes:
    body, mark, _ = line.rpartition(CHAIN.encode())
    return body + b"}" if mark else line
