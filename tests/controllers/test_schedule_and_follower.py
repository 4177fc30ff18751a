"""Workers by the time of the day, and by the cores that there are, as functions of made-up statistics."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.made_up import view
from sterna.controllers import Said, follower, schedule
from sterna.errors import InvalidInput

LOADS = [[100] * 16] * 4


def at(hour, minute=0, workers=2, **others):
    moment = datetime(2026, 3, 5, hour, minute, tzinfo=timezone.utc).timestamp()
    return view(LOADS, workers=workers, now=moment, **others)


def wanted(verdict):
    return None if verdict.target is None else verdict.target.workers


@pytest.mark.parametrize(
    ("hour", "minute", "workers"), [(0, 0, 3), (7, 29, 3), (7, 30, 8), (19, 59, 8), (20, 0, 3), (23, 59, 3)]
)
def test_the_entry_in_force_is_followed(hour, minute, workers):
    assert wanted(schedule({"20:00": 3, "07:30": 8})(at(hour, minute))) == workers


def test_ahead_of_its_time():
    early = schedule({"07:30": 8, "20:00": 3}, ahead="15 minutes")
    assert wanted(early(at(7, 14))) == 3
    assert wanted(early(at(7, 15))) == 8


def test_in_another_time_zone():
    tokyo = schedule({"07:30": 8, "20:00": 3}, zone="Asia/Tokyo")
    assert wanted(tokyo(at(0))) == 8
    assert wanted(tokyo(at(11))) == 3


def test_it_says_it_once_and_then_lets_the_user_be():
    controller = schedule({"07:30": 8, "20:00": 3})
    first = controller(at(9))
    for outcome in ("asked", "advised", "declined"):
        said = (Said(outcome, 1, at(9).now, facts=first.facts),)
        assert wanted(controller(at(10, said=said))) is None
        assert wanted(controller(at(21, said=said))) == 3
    said = (Said("refused", 1, at(9).now, facts=first.facts),)
    assert wanted(controller(replace(at(9, said=said), now=at(9).now + 30))) is None
    assert wanted(controller(at(10, said=said))) == 8


def test_where_the_number_was_right_already_a_change_by_hand_stays():
    controller = schedule({"07:30": 8, "20:00": 3})
    before, now = at(9, workers=8), at(9, workers=5)
    assert wanted(controller(before)) is None
    assert wanted(controller(replace(now, samples=(*before.samples[:2], *now.samples[2:])))) is None
    assert wanted(controller(now)) == 8


def test_fewer_only_if_it_pays_until_the_next_entry():
    controller = schedule({"07:30": 8, "20:00": 3})
    verdict = controller(at(20, workers=8, size=10**16))
    assert verdict.declined
    assert "not worth moving" in verdict.why
    assert wanted(controller(at(8, workers=2, size=10**16))) == 8


@given(
    st.dictionaries(st.times().map(lambda one: one.isoformat()), st.integers(1, 9), min_size=1, max_size=5),
    st.floats(0, 3e9),
)
def test_some_entry_is_always_in_force(entries, moment):
    since, count, until = schedule(entries).in_force(moment)
    assert since.timestamp() <= moment < until.timestamp()
    assert until.timestamp() - since.timestamp() <= 86400
    assert count in entries.values()


@pytest.mark.parametrize(
    ("entries", "options", "words"),
    [
        ({}, {}, "entries must be a dict"),
        ([("07:30", 8)], {}, "entries must be a dict"),
        ({"noon": 8}, {}, "entries: 'noon'"),
        ({7: 8}, {}, "entries: 7"),
        ({"07:30+01:00": 8}, {}, "use zone="),
        ({"07:30": 8, "07:30:00": 9}, {}, "a time twice"),
        ({"07:30": 0}, {}, r"entries\['07:30'\]"),
        ({"07:30": 8}, {"zone": "Nowhere/Atoll"}, "zone: "),
        ({"07:30": 8}, {"zone": 5}, "zone: "),
        ({"07:30": 8}, {"ahead": "soon"}, "ahead: "),
    ],
)
def test_wrong_schedules_are_named(entries, options, words):
    with pytest.raises(InvalidInput, match=words):
        schedule(entries, **options)


def test_as_many_workers_as_cores_once_their_number_has_settled():
    now = at(9).now
    controller = follower(settle="10 seconds")
    assert wanted(controller(at(9, cores=(6, now - 20)))) == 6
    assert wanted(controller(at(9, cores=(6, now - 5)))) is None
    assert wanted(controller(at(9, cores=(2, now - 20)))) is None
    assert wanted(controller(at(9, workers=8, cores=(6, now - 20)))) == 6
    assert "not known" in controller(at(9)).why
    assert wanted(controller(at(9, cores=(6, now - 20), said=(Said("asked", 1, now - 30),)))) is None
    assert wanted(follower(workers_a_core=2, most=9)(at(9, cores=(6, now - 20)))) == 9
    assert wanted(follower(workers_a_core=0.5, least=2)(at(9, workers=3, cores=(2, now - 20)))) == 2
    assert wanted(controller(at(9, cores=(40, now - 20)))) == 16  # there are no more bins
    assert controller(at(9, workers=8, size=10**16, cores=(6, now - 20))).declined


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers_a_core": 0}, "workers_a_core must be"),
        ({"least": 3, "most": 2}, "least=3 is more than most=2"),
        ({"settle": "a bit"}, "settle: "),
    ],
)
def test_wrong_options_of_the_follower_are_named(options, words):
    with pytest.raises(InvalidInput, match=words):
        follower(**options)
