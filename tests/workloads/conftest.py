"""One real broker for all tests of the session; started by the first that asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.kafka import Broker

_names = itertools.count()


@pytest.fixture(scope="session")
def broker(
    require: Callable[[str, bool, str], None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
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
