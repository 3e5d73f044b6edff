"""Fixtures that several folders of tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small local Spark for all tests of the session; started by the first that asks."""
    from analysis.spark import session

    spark = session("fogscale tests", master="local[2]")
    yield spark
    spark.stop()
