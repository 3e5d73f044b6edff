"""What happened to a run: each thing told once, with how long it lasted."""

from controller.testbeds.flink.incidents import Incidents


def test_what_is_away_is_told_once_and_again_when_it_is_back():
    times_s = iter([10.0, 10.0, 14.5, 14.5])
    incidents = Incidents(lambda: next(times_s))
    incidents.away("Flink", "no answer")
    incidents.away("Flink", "still none")
    incidents.back("Flink")
    incidents.back("Flink")
    gone, returned = incidents.take()
    assert (gone.kind, gone.sender, gone.data["reason"]) == ("away", "Flink", "no answer")
    assert (returned.kind, returned.data) == ("back", {"at_s": 14.5, "seconds": 4.5})
    assert incidents.take() == ()


def test_long_reasons_are_cut():
    incidents = Incidents(lambda: 0.0)
    incidents.tell("lost", "job", reason="x" * 1000)
    (note,) = incidents.take()
    assert len(note.data["reason"]) == 200
