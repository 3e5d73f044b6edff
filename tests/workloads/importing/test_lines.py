"""Lines read in parts: each once, with its place, whatever is in them and wherever the parts begin."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.importing.lines import LONGEST_LINE_BYTES, SAMPLE_CHUNK_BYTES, line_batches, lines_at
from workloads.importing.reasons import CORRUPT_GZIP, TRUNCATED_GZIP
from workloads.importing.streams import parts_of


def lines_of(path, part_bytes=1 << 30):
    return [
        (position, text, lines.damage)
        for part in parts_of(path, 3, part_bytes)
        for lines in line_batches(part)
        for position, text in zip(lines.positions, lines.texts(range(len(lines.ends))), strict=True)
    ]


@settings(deadline=None)
@given(
    texts=st.lists(
        st.text(st.characters(exclude_characters="\n\ufeff", codec="utf-8"), max_size=9), max_size=30
    ),
    ends=st.booleans(),
    part_bytes=st.integers(1, 60),
)
def test_parts_of_any_size_hold_each_line_once(tmp_path_factory, texts, ends, part_bytes):
    content = "\n".join(texts).encode() + (b"\n" if ends and texts else b"")
    path = tmp_path_factory.mktemp("lines") / "file.csv"
    path.write_bytes(content)
    expected, position = [], 0
    for line in content.splitlines(keepends=True) if b"\r" not in content else _split(content):
        expected.append((position, line.decode().rstrip("\r\n"), None))
        position += len(line)
    assert lines_of(path, part_bytes) == expected


def _split(content):
    pieces = [piece + b"\n" for piece in content.split(b"\n")]
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]


def test_gzip_positions_count_gunzipped_bytes(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\nthree"))
    assert lines_of(path) == [(0, "one", None), (4, "two", None), (8, "three", None)]


def test_a_cut_gzip_ends_with_a_row_that_says_so(tmp_path):
    path = tmp_path / "file.gz"
    content = b"".join(b"line %d\n" % (n**3) for n in range(3000))
    path.write_bytes(gzip.compress(content)[:5000])
    *whole, (position, cut, damage) = lines_of(path)
    assert damage == TRUNCATED_GZIP
    assert "".join(f"{text}\n" for _, text, _ in whole).encode() == content[:position]
    assert content[position:].startswith(cut.encode())
    assert len(whole) > 500


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_mark_of_byte_order_belongs_to_no_line(tmp_path, compress):
    path = tmp_path / "file"
    path.write_bytes(compress("\ufeffone\n\ufefftwo\n".encode()))
    assert lines_of(path) == [(3, "one", None), (7, "\ufefftwo", None)]
    (part,) = parts_of(path, 0, 1 << 30)
    assert list(lines_at(part, np.array([3, 7]))) == ["one", "\ufefftwo"]


def test_what_comes_after_a_damaged_member_is_read_with_its_place(tmp_path):
    path = tmp_path / "file.gz"
    broken = bytearray(gzip.compress(b"three\nfo"))
    broken[-8:-4] = bytes(4)  # its checksum
    path.write_bytes(gzip.compress(b"one\ntwo\n") + broken + gzip.compress(b"six\n"))
    assert lines_of(path) == [
        (0, "one", None), (4, "two", None), (8, "three", None), (14, "fo", CORRUPT_GZIP), (16, "six", None),
    ]  # fmt: skip
    (part,) = parts_of(path, 0, 1 << 30)
    assert list(lines_at(part, np.array([8, 16]))) == ["three", "six"]


def test_bytes_that_are_no_utf8_stay_readable(tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes(b"caf\xe9,1\nok\n")
    assert lines_of(path) == [(0, "caf\\xe9,1", None), (7, "ok", None)]


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes(b"x" * (5 * LONGEST_LINE_BYTES // 2))
    assert [(position, len(raw)) for position, raw, _ in lines_of(path)] == [
        (0, LONGEST_LINE_BYTES),
        (LONGEST_LINE_BYTES, LONGEST_LINE_BYTES),
        (2 * LONGEST_LINE_BYTES, LONGEST_LINE_BYTES // 2),
    ]


@pytest.mark.parametrize("name", ["plain", "gzip"])
def test_a_sample_holds_whole_lines_from_all_over_the_file(tmp_path, name):
    content = b"".join(b"%09d,%d\n" % (n, n * n) for n in range(200_000))
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name == "gzip" else content)
    (part,) = parts_of(path, 0, 1 << 30)
    texts = [
        text for lines in line_batches(part, sample_every=8) for text in lines.texts(range(len(lines.ends)))
    ]
    numbers = [int(text.split(",")[0]) for text in texts]
    assert texts == [f"{n:09d},{n * n}" for n in numbers]
    assert 0.02 < len(numbers) / 200_000 < 0.4
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) > 150_000
    assert len(content) // 8 > SAMPLE_CHUNK_BYTES


@pytest.mark.parametrize("name", ["plain", "gzip"])
def test_lines_are_found_again_by_their_places(tmp_path, name):
    content = b"".join(b"%d,%d\r\n" % (n, n * n) for n in range(100_000))
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name == "gzip" else content)
    (part,) = parts_of(path, 0, 1 << 30)
    wanted = [content.index(b"\n%d," % n) + 1 for n in (70_123, 5, 99_999)]
    assert list(lines_at(part, np.array(wanted))) == [f"{n},{n * n}" for n in (5, 70_123, 99_999)]
