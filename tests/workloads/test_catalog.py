"""Workloads are found by name, by file drop and by path; every mistake is answered with its fix."""

import importlib
import sys
from textwrap import dedent

import numpy as np
import pytest

import workloads.traces
from fogscale.errors import FogscaleError
from workloads.catalog import broken, definitions, load
from workloads.profile import RateProfile, summed
from workloads.records.registry import FORMATS
from workloads.workload import Workload

FLAT = """
    import numpy as np

    from workloads.profile import RateProfile
    from workloads.workload import Workload, register


    @register("flat")
    def flat(rate_per_s: float = 100.0, span_s: float = 3600.0) -> Workload:
        \"\"\"The same rate all the time.

        And more about it.
        \"\"\"
        return Workload(RateProfile("flat", "generated", np.array([rate_per_s * span_s]), span_s))
"""


@pytest.fixture
def drop(tmp_path, monkeypatch):
    """Drops a file beside those of workloads/traces/, as a user would, without touching the real folder."""
    monkeypatch.setattr(workloads.traces, "__path__", [*workloads.traces.__path__, str(tmp_path)])
    dropped = []

    def write(stem, text):
        (tmp_path / f"{stem}.py").write_text(dedent(text))
        importlib.invalidate_caches()
        dropped.append(stem)

    yield write
    for stem in dropped:
        sys.modules.pop(f"workloads.traces.{stem}", None)
        vars(workloads.traces).pop(stem, None)


def test_the_built_in_workloads_are_listed_with_a_summary():
    assert {"taxi", "worldcup98"} <= definitions().keys()
    assert all(definition.summary for definition in definitions().values())


@pytest.mark.parametrize("name", [name for name, each in definitions().items() if not each.needs])
def test_a_workload_loads_under_its_own_name(name):
    workload = load(name)
    assert workload.name == name
    assert workload.profile.source
    assert workload.profile.total_records > 0
    assert workload.records in FORMATS


def test_what_a_workload_needs_is_known_before_it_is_loaded():
    needs = {name: each.needs for name, each in definitions().items() if each.needs}
    assert needs == {
        "csv": ("path",),
        "joined": ("of",),
        "per_operator": ("of",),
        "scaled": ("of", "factor"),
        "shifted": ("of", "by_s"),
        "variation_file": ("path",),
    }


def test_parts_of_a_workload_must_last_equally_long():
    short, long = (RateProfile("x", "written by the test", np.ones(n), 1.0) for n in (2, 3))
    with pytest.raises(FogscaleError, match="operator 'map' is driven for 2 s, the whole for 3 s"):
        Workload(long, inputs={"map": short})
    with pytest.raises(FogscaleError, match="its profiles must all last equally long"):
        summed("both", "written by the test", [short, long])


def test_a_sum_reads_smooth_parts_as_fine_as_they_are():
    taxi = load("taxi").profile
    twice = summed("twice", "written by the test", [taxi, taxi])
    edges_s = np.arange(0, taxi.span_s + 1, 600)
    np.testing.assert_allclose(twice.between(edges_s), 2 * taxi.between(edges_s), rtol=1e-9)


def test_a_dropped_file_is_found(drop):
    assert "flat" not in definitions()
    drop("flat", FLAT)
    assert definitions()["flat"].summary == "The same rate all the time."
    assert list(definitions()["flat"].parameters) == ["rate_per_s", "span_s"]
    assert load("flat").profile.mean_per_s == 100


def test_parameters_reach_the_workload(drop):
    drop("flat", FLAT)
    profile = load("flat", rate_per_s=5, span_s="60").profile  # a command line gives strings
    assert (profile.mean_per_s, profile.span_s) == (5, 60)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        pytest.param(
            {"rate_pers": 5},
            "workload 'flat': unknown parameter 'rate_pers': did you mean rate_per_s?"
            " (known: rate_per_s, span_s)",
            id="misspelt",
        ),
        pytest.param(
            {"rate_per_s": "many"},
            "workload 'flat': parameter 'rate_per_s' is 'many': Input should be a valid number,"
            " unable to parse string as a number",
            id="no number",
        ),
    ],
)
def test_bad_parameters_are_named(drop, parameters, message):
    drop("flat", FLAT)
    with pytest.raises(FogscaleError) as error:
        load("flat", **parameters)
    assert str(error.value) == message


def test_a_parameter_without_a_default_is_asked_for(drop):
    drop("flat", FLAT.replace("float = 100.0", "float"))
    with pytest.raises(
        FogscaleError, match="workload 'flat' needs the parameter 'rate_per_s': add rate_per_s="
    ):
        load("flat")


def test_two_files_may_not_declare_one_name(drop):
    drop("flat", FLAT)
    drop("other", FLAT)
    assert definitions()["flat"].build.__module__ == "workloads.traces.flat"
    assert "'flat' (workloads.traces.flat and workloads.traces.other): rename one" in broken()["other"]


def test_a_file_may_build_on_anothers_workload(drop):
    drop("flat", FLAT)
    drop("other", "from workloads.traces.flat import flat as base")
    assert "flat" in definitions()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("def broken(:", "SyntaxError: invalid syntax", id="syntax"),
        pytest.param(
            "import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'", id="import"
        ),
        pytest.param("raise ValueError('two\\nlines')", "ValueError: two lines", id="a message of two lines"),
    ],
)
def test_a_broken_file_disables_itself_and_no_other(drop, text, reason):
    drop("halfdone", text)
    assert load("taxi").profile.total_records > 0
    with pytest.raises(FogscaleError, match=rf"workload 'halfdone' is broken: .*{reason}") as error:
        load("halfdone")
    assert "\n" not in str(error.value)


def test_a_file_that_exits_is_broken_and_ends_nothing(drop):
    drop("halfdone", "import sys; sys.exit(0)")
    assert "SystemExit" in broken()["halfdone"]


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        ("raise KeyError('no')  # ", "KeyError: 'no'"),
        ("raise GeneratorExit('no')  # ", "GeneratorExit: no"),
        ("return 3  # ", "TypeError: it gives a int and no Workload"),
    ],
)
def test_a_workload_that_cannot_be_made_is_named_with_its_file(drop, instead, words):
    drop("flat", FLAT.replace("return ", instead))
    with pytest.raises(FogscaleError, match=rf"'flat' of workloads.traces.flat cannot be made \({words}"):
        load("flat")


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(FogscaleError) as error:
        load("taxy")
    assert (
        str(error.value) == f"unknown workload 'taxy': did you mean taxi? (known: {', '.join(definitions())})"
    )


def test_a_folder_that_is_no_trace_is_told_so(tmp_path):
    with pytest.raises(FogscaleError, match="a folder be made by `fogscale trace import`"):
        load(str(tmp_path))


def test_a_file_that_is_no_csv_is_told_so():
    with pytest.raises(FogscaleError, match=r"unknown workload 'day\.parquet': .*must end in \.csv"):
        load("day.parquet")


@pytest.mark.parametrize("name", ["day.csv", "DAY.CSV"])
def test_a_csv_is_loaded_by_its_path(tmp_path, name):
    (tmp_path / name).write_text("time,count\n0,60\n60,120\n")
    workload = load(str(tmp_path / name))
    assert workload.profile.total_records == 180
    assert (workload.replay.speed, workload.replay.copies, workload.replay.scale) == (10, 3, 1)


def test_a_csv_is_loaded_by_name_too(tmp_path):
    path = tmp_path / "day.csv"
    path.write_text("time,count\n0,60\n60,120\n")
    by_name, by_path = load("csv", path=str(path)), load(str(path))
    assert (by_name.name, by_name.replay) == ("day", by_path.replay)
    np.testing.assert_array_equal(by_name.profile.counts, by_path.profile.counts)


def test_a_csv_takes_no_parameters():
    with pytest.raises(FogscaleError, match=r"day\.csv: a CSV takes no parameters, but got peak"):
        load("day.csv", peak=3)
