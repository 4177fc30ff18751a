"""The search for the highest rate, on systems of which everything is known."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import SternaError
from sterna.nexmark.highest import CLOSE, SHARE, Search, Try, search_with
from sterna.nexmark.running import Plan, quick
from sterna.nexmark.settings import SETTINGS, Setting
from sterna.nexmark.shape import AUCTIONS, GROUP

SEARCH = Search()


@dataclass
class Known:
    """A system whose epochs take a fixed time, and some for each event: more once windows are full.

    Some epochs take longer than others.
    """

    floor: float
    cost: float
    full: float
    jitter: float
    seen: list = field(default_factory=list)

    def epoch(self, size, *, full=True):
        return self.floor + size * self.cost * (self.full if full else 1.0)

    def attempt(self, rate, size, full):
        self.seen.append((rate, size, full))
        mean = self.epoch(size, full=full)
        return Try(size, mean, 2 * mean * (1 + self.jitter), full)

    def waits(self, rate):
        """How long records wait at the most at a steady rate, with full windows.

        An epoch takes what came while the last one ran.
        """
        busy = rate * self.cost * self.full
        return 2 * (1 + self.jitter) * self.floor / (1 - busy) if busy < 1 else float("inf")


systems = st.builds(
    Known, st.floats(0.05, 0.4), st.floats(2e-7, 2e-5), st.floats(1.0, 5.0), st.floats(0.0, 0.5)
)


@given(systems, st.booleans())
def test_what_converged_was_tried_with_full_windows_and_keeps_the_latency(system, windows):
    found = search_with(system.attempt, SEARCH, windows=windows)
    if found.converged:
        last = found.tries[-1]
        assert last.full
        assert found.rate == pytest.approx(last.rate * SHARE, rel=0.3)
        assert system.waits(found.rate) <= SEARCH.latency * (1 + CLOSE)


@given(systems)
def test_with_enough_tries_it_always_converges(system):
    assert search_with(system.attempt, Search(tries=12), windows=True).converged


def test_windows_that_make_epochs_longer_once_they_are_full_lower_the_rate():
    systems = [Known(0.1, 2e-6, full, 0.1) for full in (1.0, 4.0)]
    light, heavy = (search_with(system.attempt, Search(tries=6), windows=True) for system in systems)
    assert heavy.rate < 0.4 * light.rate


def test_longest_waits_count_and_not_the_average():
    even, uneven = (
        search_with(Known(0.1, 2e-6, 1.0, jitter).attempt, Search(tries=6), windows=False)
        for jitter in (0.0, 0.5)
    )
    assert uneven.tries[-1].mean < 0.8 * even.tries[-1].mean
    assert uneven.rate < even.rate


def test_a_search_that_ends_too_early_says_so():
    system = Known(0.1, 2e-6, 5.0, 0.3)
    found = search_with(system.attempt, Search(short=1, tries=1), windows=True)
    assert not found.converged
    assert [one.full for one in found.tries] == [False, True]


def test_short_tries_come_near_before_the_long_ones():
    quick, slow = Known(0.02, 1e-7, 1.0, 0.0), Known(0.1, 4e-6, 1.0, 0.0)
    for system in (quick, slow):
        assert search_with(system.attempt, SEARCH, windows=True).converged
    assert [full for _, _, full in quick.seen] == [False, False, False, True]
    assert [full for _, _, full in slow.seen] == [False, True]


def test_only_tries_that_could_differ_are_short():
    system = Known(0.1, 2e-5, 1.0, 0.0)
    search_with(system.attempt, SEARCH, windows=False)
    assert all(full for _, _, full in system.seen)


def test_epochs_that_never_end_are_made_smaller_and_then_given_up():
    sizes = []

    def never(rate, size, full):
        sizes.append(size)

    with pytest.raises(SternaError, match="give a rate"):
        search_with(never, SEARCH, windows=True)
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == SEARCH.short + SEARCH.tries


@given(st.sampled_from(sorted(SETTINGS)), st.floats(1_000, 5e6))
def test_a_query_runs_until_its_windows_are_full(query, rate):
    setting = SETTINGS[query]
    assert setting.needed(rate) * setting.dilation >= setting.window
    assert setting.needed(rate) <= 130.0


def test_queries_of_open_auctions_have_many_and_wait_for_them():
    """At whatever rate: an auction is open for twice the average at the most, and then it has expired."""
    for query in ("q4", "q6"):
        for rate in (150_000, 1_500_000):
            plan = Plan.of(query)
            open_ = plan.setting.auctions(rate)
            assert open_ >= 700_000
            assert plan.events(rate).options["inFlight"] == open_
            expired = plan.needed(rate) + plan.check + plan.course.quiet
            assert expired * rate * AUCTIONS / GROUP >= 2 * open_
    assert Setting().needed(400_000) < 20


def test_who_wants_so_many_auctions_open_gets_them():
    plan = Plan.of("q4").with_events(5_000, None)
    assert plan.events(1e6).options["inFlight"] == 5_000
    assert quick(Plan.of("q4")).events(1e6).options["inFlight"] == 1_000
