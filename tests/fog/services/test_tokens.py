"""When a token is due, over, or of another account than the one that asks."""

from __future__ import annotations

import base64
import json

import pytest

from fog.services.tokens import Claims, claims, holds, token_in
from tests.support.tokens import WEEK_S, token


def test_a_token_tells_whose_it_is_and_when_it_ends() -> None:
    assert claims(token()) == Claims("fogscale", "controller", "u1", 1000.0, 1000.0 + WEEK_S)


@pytest.mark.parametrize("text", ["", "t", "a.b.c", "..", f"x.{base64.b64encode(b'[]').decode()}.y"])
def test_what_is_no_token_of_an_account_tells_nothing(text: str) -> None:
    assert claims(text) is None


@pytest.mark.parametrize(
    ("issued_s", "lasts_s"),
    [(10**400, 1), (0, 10**400), (-1e9, 1.0), (1000.0, -2000.0), (0, 1e15), (float("nan"), 1)],
)
def test_times_that_no_calendar_knows_are_no_times(issued_s: float, lasts_s: float) -> None:
    assert claims(token(issued_s, lasts_s)) is None


@pytest.mark.parametrize(
    ("age_s", "due", "over"),
    [(0, False, False), (WEEK_S / 2 - 1, False, False), (WEEK_S / 2, True, False), (WEEK_S, True, True)],
)
def test_it_is_due_after_half_of_its_time(age_s: float, due: bool, over: bool) -> None:
    told = claims(token())
    assert told is not None
    assert (told.is_due(1000 + age_s), told.is_over(1000 + age_s)) == (due, over)


@pytest.mark.parametrize(
    ("uid", "lasts_s", "now_s", "expected"),
    [
        pytest.param("u1", WEEK_S, 2000.0, True, id="fresh"),
        pytest.param("u2", WEEK_S, 2000.0, False, id="the account was made anew"),
        pytest.param("u1", WEEK_S / 7, 2000.0, False, id="lasts longer than is wanted now"),
        pytest.param("u1", WEEK_S, 1000 + WEEK_S / 2, False, id="half over"),
    ],
)
def test_another_run_leaves_a_token_alone_only_while_it_holds(
    uid: str, lasts_s: float, now_s: float, expected: bool
) -> None:
    assert holds(token(), uid, lasts_s, now_s) is expected


def test_the_token_of_a_kubeconfig_or_none() -> None:
    assert token_in(json.dumps({"users": [{"name": "controller", "user": {"token": "t"}}]})) == "t"
    assert [token_in(text) for text in ("", "{", "[]", '{"users": []}')] == [""] * 4


def test_a_token_that_ended_before_it_was_issued_is_over() -> None:
    told = claims(token(1000.0, -60.0))
    assert told is not None
    assert told.is_due(1000.0)
    assert told.is_over(1000.0)
