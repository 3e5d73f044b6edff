"""Gunzipping what can be had of a file: whole, in several members, cut anywhere, or broken."""

import gzip

import pytest

from workloads.importing.reasons import CORRUPT_GZIP, TRUNCATED_GZIP
from workloads.importing.streams import CHUNK_BYTES, Gunzip, parts_of

TEXT = b"".join(b"line %d of a text that does not repeat itself too much\n" % (n * n) for n in range(5000))


def gunzipped(path):
    stream = Gunzip(str(path))
    return b"".join(stream), stream.damage


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "file.gz"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(TEXT), id="one member"),
        pytest.param(gzip.compress(TEXT[:9000]) + gzip.compress(TEXT[9000:]), id="two members"),
        pytest.param(gzip.compress(TEXT) + gzip.compress(b""), id="an empty member at the end"),
        pytest.param(gzip.compress(TEXT) + bytes(512), id="padded with zeros"),
        pytest.param(gzip.compress(TEXT) + bytes(1 << 17), id="padded with more zeros than are read at once"),
    ],
)
def test_a_whole_file(file, content):
    assert gunzipped(file(content)) == (TEXT, None)


@pytest.mark.parametrize("cut", [2, 9, 10, 11, 500, 20_000, -9, -8, -4, -1])
def test_a_cut_anywhere_keeps_what_came_before(file, cut):
    """In the header, in the data, in the checksum: zlib's own decompressor says how much can be had."""
    content = gzip.compress(TEXT)
    kept, damage = gunzipped(file(content[:cut]))
    assert damage == TRUNCATED_GZIP
    assert TEXT.startswith(kept)
    if cut >= -8 and cut < 0:
        assert kept == TEXT, "only the checksum is missing"
    if cut == 20_000:
        assert len(kept) > len(TEXT) // 3


def test_a_cut_in_the_second_member_keeps_the_first(file):
    content = gzip.compress(TEXT[:9000]) + gzip.compress(TEXT[9000:])[:300]
    kept, damage = gunzipped(file(content))
    assert damage == TRUNCATED_GZIP
    assert len(kept) >= 9000
    assert TEXT.startswith(kept)


@pytest.mark.parametrize("tail", [b"not gzip at all", b"\x1f\x8b\x07" + bytes(9)])
def test_what_follows_a_member_and_is_none_is_reported(file, tail):
    assert gunzipped(file(gzip.compress(TEXT) + tail)) == (TEXT, CORRUPT_GZIP)


def test_a_broken_byte_keeps_what_came_before_it(file):
    content = bytearray(gzip.compress(TEXT))
    middle = len(content) // 2
    content[middle : middle + 40] = b"\xff" * 40
    kept, damage = gunzipped(file(bytes(content)))
    assert damage == CORRUPT_GZIP
    intact = next((n for n, (a, b) in enumerate(zip(kept, TEXT, strict=False)) if a != b), len(kept))
    assert intact > len(TEXT) // 4


def test_a_highly_compressed_file_comes_in_small_pieces(file):
    pieces = [len(piece) for piece in Gunzip(str(file(gzip.compress(bytes(50 << 20)))))]
    assert sum(pieces) == 50 << 20
    assert max(pieces) <= CHUNK_BYTES


def test_a_plain_file_is_cut_between_records(tmp_path):
    path = tmp_path / "log.bin"
    path.write_bytes(bytes(20 * 10 + 7))
    parts = [(part.start, part.end) for part in parts_of(path, 0, part_bytes=65, record_bytes=20)]
    assert parts == [(0, 60), (60, 120), (120, 180), (180, 207)]
