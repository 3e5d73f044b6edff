"""Lines to columns: many at once in the good case, and yet each judged as if it stood alone."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.taxi_files import donovan_work, foil
from workloads.importing.editions import DONOVAN_WORK, FOIL
from workloads.importing.lines import Lines
from workloads.importing.slices import duplicates
from workloads.importing.streams import parts_of
from workloads.importing.taxi import parsed, trips_at

ODD = [
    foil(1), foil(2, miles=" 1.5"), foil(3, miles="1e1"), foil(4, miles="NaN"), foil(5, miles="inf"),
    foil(6, seconds="0x10"), foil(7, seconds=" 604 "), foil(8, seconds="+604"), foil(9, seconds="9" * 30),
    foil(10, pickup="2013-06-08"), foil(11, pickup="2013-06-31 00:00:00"),
    foil(12, pickup="2013-06-08T09:12:07"), foil(13, pickup="2013-06-08 09:12:07.25"),
    foil(14, pickup="2013-06-08 09:12:07Z"), foil(15, vendor="a\rb"), foil(16, vendor='"'),
    foil(17, vendor="caf\xe9"), foil(18, vendor=""), "", ",", "," * 13, foil(19) + ",", "\ufeff" + foil(20),
]  # fmt: skip


def lines_of(texts, encoding="utf-8"):
    pieces = [f"{text}\n".encode(encoding) for text in texts]
    return Lines(0, b"".join(pieces), np.cumsum([len(piece) for piece in pieces]))


def row_of(table, number):
    row = {name: table[name][number].as_py() for name in table.schema.names}
    return {**row, "position": None, "taxi_id": (row["taxi_id"] or "").removeprefix("\ufeff")}


@settings(deadline=None, max_examples=60)
@given(texts=st.lists(st.sampled_from(ODD), min_size=1, max_size=12))
def test_a_line_is_judged_alike_whatever_stands_around_it(texts):
    together = parsed(lines_of(texts), FOIL)
    assert together.num_rows == len(texts)
    for number, text in enumerate(texts):
        assert row_of(together, number) == row_of(parsed(lines_of([text]), FOIL), 0)


def test_what_is_sound_and_what_is_not():
    """Spelled out, since the test before would not notice if all were malformed."""
    reasons = parsed(lines_of(ODD), FOIL)["reason"].to_pylist()
    sound = [text.split(",")[0][-2:] for text, reason in zip(ODD, reasons, strict=True) if not reason]
    assert sound[:3] == ["01", "02", "03"]
    for number in (4, 9, 10, 11, 14, 15):
        assert f"{number:02X}" not in sound


def test_bytes_that_are_no_utf8_spoil_neither_their_line_nor_others():
    table = parsed(lines_of([foil(1), foil(2, vendor="caf\xe9"), foil(3)], "latin-1"), FOIL)
    assert table["reason"].to_pylist() == [0, 0, 0]
    assert table["vendor"].to_pylist() == ["CMT", "caf\\xe9", "CMT"]
    assert table["taxi_id"].to_pylist() == [foil(n).split(",")[0] for n in (1, 2, 3)]


def test_an_open_quote_swallows_no_other_line():
    texts = [donovan_work(1), donovan_work(2).replace('"CMT"', '"CMT'), donovan_work(3)]
    table = parsed(lines_of(texts), DONOVAN_WORK)
    assert table["taxi_id"].to_pylist() == ["2013000001", "2013000002", "2013000003"]
    assert table["vendor"].to_pylist() == ["CMT"] * 3


def test_only_rows_equal_in_every_field_are_duplicates():
    """All but the taxi is the same in all of them, and so is the fingerprint."""
    table = parsed(lines_of([foil(n) for n in (1, 2, 1, 3, 2, 1)] + ["broken", "broken"]), FOIL)
    for name, kind in (("file", pa.int32()), ("raw", pa.string())):
        table = table.append_column(name, pa.nulls(8, kind))
    assert duplicates(table).tolist() == [False, False, True, False, True, True, False, False]


@pytest.mark.parametrize("name", ["trips.csv", "trips.csv.gz"])
def test_rows_are_quoted_from_where_they_stood(tmp_path, name):
    content = "".join(f"{foil(n)}\n" for n in range(50)).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (part,) = parts_of(path, 0, 1 << 30)
    length = len(foil(0)) + 1
    assert trips_at(part, np.array([30 * length, 3 * length]), is_tlc=False) == [foil(3), foil(30)]
