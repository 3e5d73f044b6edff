"""Fixtures that several folders of tests share."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.kafka import Broker

_names = itertools.count()

# No test is about time: on a busy machine anything may take long.
usual = settings.get_profile(settings.get_current_profile_name())
settings.register_profile("fogscale", usual, deadline=None)
settings.load_profile("fogscale")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small local Spark for all tests of the session; started by the first that asks."""
    from analysis.spark import session

    spark = session("fogscale tests", master="local[2]")
    yield spark
    spark.stop()


@pytest.fixture(autouse=True)
def spark_outlives_the_test() -> Iterator[None]:
    """A test that ends processes it has not started, such as the Java of this worker, fails itself: else all
    that follow would, and none of them would say why."""
    subject = sys.modules.get("analysis.spark")
    living = [jvm for jvm in subject._jvms if jvm.poll() is None] if subject else []
    yield
    assert all(jvm.poll() is None for jvm in living), "this test has ended Spark, which others still use"


@pytest.fixture(scope="session")
def require() -> Callable[[str, bool, str], None]:
    """Skips where something real is not at hand, but fails where FOGSCALE_REQUIRE names it: nothing that a
    machine can test is skipped silently there."""

    def require_or_skip(what: str, is_there: bool, reason: str) -> None:
        if not is_there:
            complain = pytest.fail if what in os.environ.get("FOGSCALE_REQUIRE", "").split() else pytest.skip
            complain(f"{what}: {reason}")

    return require_or_skip


@pytest.fixture(scope="session")
def broker(
    require: Callable[[str, bool, str], None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """One real broker for all tests of the session; started by the first that asks."""
    from tests.support.kafka import Broker, KafkaMissingError

    broker = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.__enter__()
    except KafkaMissingError as error:
        broker.kill()
        require("kafka", False, str(error))
    yield broker
    broker.kill()


@pytest.fixture
def new_topic(broker: Broker) -> Callable[..., str]:
    """Creates an empty topic with a name of its own."""
    return lambda partitions=4, **config: broker.create_topic(f"topic-{next(_names)}", partitions, **config)


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic()
