"""The section about NEXMark's queries says what their figures say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import evaluation_samples as samples
from sterna.bench.evaluation import queries
from sterna.bench.evaluation.alike import equal_ratio
from sterna.bench.evaluation.entries import Entry
from sterna.bench.evaluation.words import ALIKE, VISIBLE
from sterna.errors import InvalidInput

ratios = st.floats(0.2, 100.0)


@given(ratios, ratios, st.sampled_from([0, 50_000_000]))
def test_a_query_never_contradicts_its_figures(spike, fine, moved):
    entry = Entry("x.json", samples.nexmark("q4", moved=moved, spike=1000 * spike, fine=1000 * fine))
    answer = queries.Answer("q4", entry, tuple(entry.each("migrations")))
    said = queries.verdict(answer)
    whole, steps = (answer.ratios(answer.worst(name)) for name in ("all_at_once", "matched"))
    pairs = list(zip(whole, steps, strict=True))
    seen = max(*whole, *steps) > VISIBLE
    worse = all(one * ALIKE < other for one, other in pairs)
    assert ("No state moves" in said) == (not moved)
    assert ("Neither can be told" in said) == (bool(moved) and not seen)
    assert ("is worse here" in said) == (bool(moved) and seen and worse)
    assert ("As in the paper for queries with much state" in said) == (
        bool(moved) and seen and not worse and all(other * ALIKE < one for one, other in pairs)
    )
    assert ("can't be told from the quiet time" in said) <= (max(steps) <= VISIBLE)


def test_a_query_with_one_strategy_has_its_table(section):
    file = samples.nexmark("q3")
    file["migrations"] = file["migrations"][:2]
    found = section(queries.section, **{"nexmark-q3": file})
    assert "Q3: one strategy only; 7 not measured yet" in found.here
    assert "all\\_at\\_once and back" in found.text


def test_a_query_says_how_its_rate_was_found_and_whether_it_was_kept(section):
    file = samples.nexmark("q4")
    text = section(queries.section, **{"nexmark-q4": file}).text
    assert "60,000 events a second (found by search, which converged, lowered once)" in text
    assert "longest 1.00 s, within the 2.00 s that the search was for" in text
    file["steady"]["max_ms"], file["search"]["converged"], file["search"]["reductions"] = 2600.0, False, 3
    text = section(queries.section, **{"nexmark-q4": file}).text
    assert "found by search, which did not converge, lowered 3 times" in text
    assert "longest 2.60 s, **not within** the 2.00 s" in text


def test_a_rate_that_was_given_promises_nothing(section):
    file = {**samples.nexmark("q4"), "searched": False, "search": None}
    text = section(queries.section, **{"nexmark-q4": file}).text
    assert "60,000 events a second (given)" in text
    assert "the search was for" not in text


def test_a_query_says_what_moved_and_with_how_many_bins(section):
    text = section(queries.section, **{"nexmark-q4": samples.nexmark("q4")}).text
    assert (
        "256 bins (the paper: 4,096, with which `matched` would take 16.0× as many epochs) "
        "of `binary` and `aggregate`" in text
    )
    # 3,600 begin a second, and are open for up to 1,111 s: so many do not expire within 180 s.
    assert "595,512 auctions open when state first moves" in text
    assert "| all\\_at\\_once there | 1 | 200 MB | 50.0 MB |" in text


@given(ratios)
def test_the_goal_of_matched_is_kept_or_missed_as_the_stricter_ratio_says(fine):
    entry = Entry("x.json", samples.nexmark("q3", fine=1000 * fine))
    answer = queries.Answer("q3", entry, tuple(entry.each("migrations")))
    said = queries.goal({"q3": answer})
    most = max(answer.ratios(answer.worst("matched")))
    assert most >= fine * (1 - 1e-9)
    assert ("**missed**" in said) == (most > queries.MOST_RATIO)
    assert ("kept" in said) == (most <= queries.MOST_RATIO)


def test_a_short_migration_is_compared_with_short_quiet_times():
    """A spike of two seconds is the longest of the quiet minute, and not of most seconds of it."""
    timeline = [{"second": at / 4, "max_ms": 4000.0 if 100 <= at < 108 else 1000.0} for at in range(4 * 70)]
    slots = Entry("x.json", {"timeline": timeline}).each("timeline")

    def ratio(seconds):
        one = {"second": 62.0, "seconds": seconds, "during": {"max_ms": 4000.0}}
        return equal_ratio(Entry("x.json", one), slots, 60.0)

    assert ratio(1.0) == pytest.approx(4.0)
    assert ratio(58.0) == ratio(600.0) == pytest.approx(1.0)
    assert equal_ratio(Entry("x.json", {"second": 1.0}), slots, 60.0) is None


def test_a_goal_that_only_the_quiet_minute_keeps_is_missed(section):
    """The quiet time before has a spike, and most times as long as the migration have none."""
    file = samples.nexmark("q3", fine=2000.0)
    for one in file["migrations"]:
        if one["strategy"] == "matched":
            one["max_ratio"], one["seconds"] = 1.04, 2.0
    text = section(queries.section, **{"nexmark-q3": file}).text
    assert "Q3 1.04× and 2." in text
    assert "×, **missed**" in text
    assert "is visible too, and shorter (1.04× and 2." in text


def test_the_goal_of_matched_is_told_of_every_query(section):
    names = [f"q{number}" for number in range(1, 9)]
    files = {f"nexmark-{name}": samples.nexmark(name, moved=0 if name == "q1" else 9) for name in names}
    text = section(queries.section, **files).text
    sentence = next(line for line in text.splitlines() if line.startswith("The goal"))
    assert all(f"{name.upper()} 1.05× and " in sentence for name in names)
    assert sentence.count("(nothing moves)") == 1


def test_each_strategy_is_shown_on_the_timeline_of_its_own_run(section):
    file = samples.nexmark("q4", spike=9000.0, fine=1000.0)
    del file["runs"]["matched"]
    with pytest.raises(InvalidInput, match='strategy is "matched"; it should be one of the runs'):
        section(queries.section, **{"nexmark-q4": file})
