"""The progress bar tells the rate of the last moments beside the wanted one."""

from workloads.producer.pacing import Tally
from workloads.producer.speedometer import Speedometer


def test_rates_are_those_of_the_last_two_seconds():
    seconds = iter((0.0, 1.0, 2.0, 3.0))
    speedometer = Speedometer(lambda: next(seconds))
    texts = [
        speedometer.text([Tally(acknowledged=done, backlog=waiting), Tally(broker_errors=errors)])
        for done, waiting, errors in ((0, 0, 0), (100, 0, 0), (200, 0, 0), (200, 100, 3))
    ]
    assert texts[0] == ""
    assert texts[2] == "100/s of 100/s, backlog 0"
    assert texts[3] == "50/s of 100/s, backlog 100, broker errors 3"  # since second 1
