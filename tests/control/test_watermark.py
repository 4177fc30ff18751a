"""The event-time frontier: the least of the sources, minus a delay, without those that are silent.

It never goes back.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sterna.watermark import Progress, advance, observe

edges = st.dictionaries(
    st.integers(0, 3),
    st.builds(Progress, st.none() | st.integers(-100, 100), st.integers(0, 20).map(float)),
    max_size=4,
)


@given(
    edges,
    st.none() | st.integers(-200, 200),
    st.integers(0, 10),
    st.none() | st.floats(0, 10),
    st.floats(20, 40),
)
def test_it_never_goes_back_and_never_passes_what_is_known(progress, previous, delay, idle, now):
    mark = advance(progress, previous, delay, idle, now)
    if previous is not None:
        assert mark is not None
        assert mark >= previous
    if mark is not None and mark != previous:
        assert any(p.newest is not None and p.newest - delay == mark for p in progress.values())


@given(edges, st.integers(0, 10), st.floats(20, 40))
def test_without_a_timeout_it_is_the_least_of_all(progress, delay, now):
    known = [p.newest for p in progress.values()]
    expected = None if None in known or not known else min(known) - delay
    assert advance(progress, None, delay, None, now) == expected


@given(edges, st.floats(0, 10), st.floats(0, 20), st.floats(20, 40))
def test_a_timeout_only_moves_it_on(progress, idle, longer, now):
    short, long = advance(progress, None, 0, idle, now), advance(progress, None, 0, idle + longer, now)
    assert long is None or (short is not None and short >= long)


def test_an_edge_that_never_had_rows_holds_it_back_until_it_counts_as_idle():
    progress = {0: Progress(100, 3.0), 1: Progress(None, 0.0)}
    assert advance(progress, None, 10, None, 99.0) is None
    assert advance(progress, None, 10, 5.0, 4.0) is None
    assert advance(progress, None, 10, 5.0, 6.0) == 90


def test_when_all_are_silent_the_last_one_that_spoke_decides():
    progress = {0: Progress(100, 9.0), 1: Progress(50, 0.0)}
    assert advance(progress, 40, 10, 5.0, 9.0) == 90
    assert advance(progress, 40, 10, 5.0, 1000.0) == 90


def test_no_edge_no_frontier():
    assert advance({}, None, 0, None, 0.0) is None
    assert advance({}, 5, 0, 1.0, 0.0) == 5


@given(edges, st.dictionaries(st.integers(0, 5), st.integers(-100, 100)), st.floats(20, 40))
def test_what_is_observed_is_the_greatest_and_the_latest(progress, newest, now):
    after = observe(progress, newest, now)
    assert set(after) == set(progress) | set(newest)
    for edge, p in after.items():
        known = [
            t
            for t in (progress[edge].newest if edge in progress else None, newest.get(edge))
            if t is not None
        ]
        assert p.newest == max(known, default=None)
        assert p.seen == (now if edge in newest else progress[edge].seen)
