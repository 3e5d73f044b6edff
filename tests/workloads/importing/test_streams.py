"""Gunzipping what can be had of a file: whole, in several members, cut anywhere, or broken."""

import gzip

import pytest

from workloads.importing.reasons import CORRUPT_GZIP, TRUNCATED_GZIP
from workloads.importing.streams import CHUNK_BYTES, gunzipped, parts_of

TEXT = b"".join(b"line %d of a text that does not repeat itself too much\n" % (n * n) for n in range(5000))


def content_of(path):
    """All that can be had, and what is wrong after how many of its bytes."""
    content, damages = b"", []
    for piece in gunzipped(str(path)):
        content += piece.content
        damages += [(piece.damage, len(content))] if piece.damage else []
    return content, damages


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
        pytest.param(gzip.compress(b"") + gzip.compress(TEXT), id="an empty member at the start"),
        pytest.param(gzip.compress(TEXT) + bytes(512), id="padded with zeros"),
        pytest.param(gzip.compress(TEXT) + bytes(1 << 17), id="padded with more zeros than are read at once"),
    ],
)
def test_a_whole_file(file, content):
    assert content_of(file(content)) == (TEXT, [])


@pytest.mark.parametrize("cut", [2, 9, 10, 11, 500, 20_000, -9, -8, -4, -1])
def test_a_cut_anywhere_keeps_what_came_before(file, cut):
    """In the header, in the data, in the checksum: zlib's own decompressor says how much can be had."""
    content = gzip.compress(TEXT)
    kept, damages = content_of(file(content[:cut]))
    assert damages == [(TRUNCATED_GZIP, len(kept))]
    assert TEXT.startswith(kept)
    if cut >= -8 and cut < 0:
        assert kept == TEXT, "only the checksum is missing"
    if cut == 20_000:
        assert len(kept) > len(TEXT) // 3


def test_a_cut_in_the_second_member_keeps_the_first(file):
    content = gzip.compress(TEXT[:9000]) + gzip.compress(TEXT[9000:])[:300]
    kept, damages = content_of(file(content))
    assert damages == [(TRUNCATED_GZIP, len(kept))]
    assert len(kept) >= 9000
    assert TEXT.startswith(kept)


@pytest.mark.parametrize("tail", [b"not gzip at all", b"\x1f\x8b\x07" + bytes(9)])
def test_what_follows_a_member_and_is_none_is_reported(file, tail):
    assert content_of(file(gzip.compress(TEXT) + tail)) == (TEXT, [(CORRUPT_GZIP, len(TEXT))])


def test_a_broken_byte_keeps_what_came_before_it(file):
    content = bytearray(gzip.compress(TEXT))
    middle = len(content) // 2
    content[middle : middle + 40] = b"\xff" * 40
    kept, damages = content_of(file(bytes(content)))
    assert damages == [(CORRUPT_GZIP, len(kept))]
    intact = next((n for n, (a, b) in enumerate(zip(kept, TEXT, strict=False)) if a != b), len(kept))
    assert intact > len(TEXT) // 4


def broken_in_the_middle(member):
    middle = len(member) // 2
    return member[:middle] + b"\xff" * 40 + member[middle + 40 :]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(broken_in_the_middle, id="broken bytes"),
        pytest.param(lambda member: member[:-8] + bytes(4) + member[-4:], id="a wrong checksum"),
        pytest.param(lambda member: member[:-4] + bytes(4), id="a wrong length"),
        pytest.param(lambda member: member[: len(member) // 2], id="cut off"),
        pytest.param(lambda member: member[:-20], id="cut off near its end"),
        pytest.param(lambda _member: b"what is this?" * 100_000, id="no gzip at all"),
        pytest.param(lambda _member: b"\x1f\x8b\x08 and yet none \x1f\x8b\x08", id="what looks like members"),
    ],
)
def test_members_after_a_damaged_one_are_read(file, damage):
    before, after = gzip.compress(TEXT[:9000]), gzip.compress(b"the third\n" * 3000)
    damaged = damage(gzip.compress(TEXT[9000:]))
    kept, damages = content_of(file(before + damaged + after + before))
    assert kept.startswith(TEXT[:9000])
    assert kept.endswith(b"the third\n" * 3000 + TEXT[:9000])
    (what, place), *others = damages
    assert (what, others) == (CORRUPT_GZIP, [])
    assert place == len(kept) - 9000 - 30_000, "the damage is told where it is"


def test_a_highly_compressed_file_comes_in_small_pieces(file):
    pieces = [len(content) for content, _ in gunzipped(str(file(gzip.compress(bytes(50 << 20)))))]
    assert sum(pieces) == 50 << 20
    assert max(pieces) <= CHUNK_BYTES


def test_a_plain_file_is_cut_between_records(tmp_path):
    path = tmp_path / "log.bin"
    path.write_bytes(bytes(20 * 10 + 7))
    parts = [(part.start, part.end) for part in parts_of(path, 0, part_bytes=65, record_bytes=20)]
    assert parts == [(0, 60), (60, 120), (120, 180), (180, 207)]
