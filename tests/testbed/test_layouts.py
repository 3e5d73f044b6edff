"""Where a job runs is what the controller says: on the TaskManagers that it names, whatever else has free
slots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controller.testbeds.flink.access import Access, access_to
from controller.testbeds.flink.broker import Offsets, set_group
from controller.testbeds.flink.job import RunningJob
from controller.testbeds.flink.program import INPUT, group_of, program_for
from controller.testbeds.flink.rest import Flink
from controller.testbeds.flink.settings import FlinkSettings
from fog.services.broker import FLINK
from tests.support.flink import scale
from tests.support.fog import Fog
from tests.support.services import inside

pytestmark = pytest.mark.testbed

PATIENCE_S = 180.0


@pytest.fixture(scope="module")
def access(fog: Fog) -> Iterator[Access]:
    """With a TaskManager on fog1, besides the one of two free slots on services1."""
    scale(fog, "fog1", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOGSCALE_STATE", str(fog.base))
        yield access_to("local")
    scale(fog, "fog1", 0)


def placed(fog: Fog, access: Access, settings: FlinkSettings, node: str) -> dict[str, tuple[str, ...]]:
    """Where the operators of a job run that was told to use that node, besides those it always uses."""

    def work() -> dict[str, tuple[str, ...]]:
        flink, run = Flink(access.flink), f"layout-{settings.layout}-{settings.chained}"
        offsets = Offsets(access.kafka.access(FLINK), INPUT)
        set_group(access.kafka.access(FLINK), group_of(run), INPUT, offsets.ends())
        offsets.close()
        job = RunningJob(flink, program_for(access, settings, run), PATIENCE_S)
        counts = job.program.instances({"map": 1})
        try:
            job.use([node])
            job.start(counts)
            job.wait_until_it_runs(counts)
            return job.placement(job.look())
        finally:
            job.cancel()
            job.release_nodes()
            job.forget_jar()
            flink.close()

    return inside(fog, work)


@pytest.mark.parametrize(
    ("settings", "node", "expected"),
    [
        pytest.param(
            {"layout": "fog"}, "fog1", ("fog1", "fog1", "fog1"), id="the whole pipeline in a slot of the fog"
        ),
        pytest.param({"layout": "fog", "chained": True}, "fog1", ("fog1", "fog1", "fog1"), id="as one task"),
        pytest.param(
            {"layout": "fog"}, "services1", ("services1",) * 3, id="not in the fog, where it was not told to"
        ),
    ],
)
def test_a_job_runs_where_it_was_told_to(
    fog: Fog, access: Access, settings: dict[str, object], node: str, expected: tuple[str, ...]
) -> None:
    found = placed(fog, access, FlinkSettings.model_validate(settings), node)
    assert tuple(found[name][0] for name in ("source", "map", "sink")) == expected
