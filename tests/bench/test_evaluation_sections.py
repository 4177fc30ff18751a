from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import evaluation_samples as samples
from bench import steady_samples as steady
from sterna.bench.evaluation import headline, judged, lasting, load, memory, overhead, peers, queries, sweeps
from sterna.bench.evaluation.alike import equal_ratio
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.moves import moves
from sterna.bench.evaluation.words import ALIKE, VISIBLE, changed
from sterna.bench.peers import queries as compared
from sterna.errors import InvalidInput

BINS, KEYS, PROPORTIONAL = sweeps.SWEEPS


@pytest.fixture
def section(tmp_path):
    def make(of, **files):
        named = {name.replace("_", "-"): value for name, value in files.items()}
        return of(Figures(samples.written(tmp_path / "figures", named)))

    return make


def test_the_headline_compares_strategies_and_spark(section):
    found = section(headline.section, migrate_headline=samples.headline())
    assert "`all_at_once` 5.00× in 3.00 s" in found.here
    assert "As in the paper, everything at once is a spike" in found.text
    assert "Every strategy has a shorter one" in found.text
    assert "**Spark is done earlier** than `matched`" in found.text
    assert "98.0 %, **missed**" in found.text
    assert "The file has no timelines" in found.text


def test_the_headline_with_timelines_shows_them(section):
    found = section(headline.section, migrate_headline=samples.headline(timelines=True))
    assert list(found.pictures) == ["figure-1.svg", "figure-1-rounds.svg"]
    assert "The file has no timelines" not in found.text


def test_a_spark_that_is_better_is_said_to_be(section):
    found = section(headline.section, migrate_headline=samples.headline(spike=40_000.0))
    assert "**Spark is better** than `all_at_once`" in found.text


def test_a_spark_that_cannot_is_told_of(section):
    found = section(headline.section, migrate_headline=samples.headline(offline=False))
    assert "| Spark 4.1 can't |" in found.text
    assert "Spark is" not in found.text


ratios = st.floats(0.2, 100.0)


@given(ratios, ratios)
def test_the_headline_never_contradicts_its_figures(spike, gentle):
    lines = [
        samples.line("all_at_once", 1000 * spike, 3.0, 1),
        samples.line("matched", 1000 * gentle, 60.0, 128),
    ]
    said = judged.strategies_compared(moves(Entry("x.json", {"results": lines})))
    assert ("small steps do not pay" in said) == (gentle >= spike)
    assert ("can hardly be told" in said) == (gentle < spike and gentle <= VISIBLE < spike)
    assert ("Nothing can be told" in said) == (gentle < spike <= VISIBLE)
    assert ("not orders of magnitude" in said) == (1 < spike / gentle < 10)


@given(ratios, ratios, st.sampled_from([0, 50_000_000]))
def test_a_query_never_contradicts_its_figures(spike, fine, moved):
    entry = Entry("x.json", samples.nexmark("q4", moved=moved, spike=1000 * spike, fine=1000 * fine))
    said = queries.verdict(queries.Answer("q4", entry, tuple(entry.each("migrations"))))
    seen = max(spike, fine) > VISIBLE
    assert ("No state moves" in said) == (not moved)
    assert ("Neither can be told" in said) == (bool(moved) and not seen)
    assert ("As in the paper for queries with much state" in said) == (
        bool(moved) and seen and fine * ALIKE < spike
    )
    assert ("is worse here" in said) == (bool(moved) and seen and spike * ALIKE < fine)


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
def test_the_goal_of_matched_is_kept_or_missed_as_its_figures_say(fine):
    entry = Entry("x.json", samples.nexmark("q4", fine=1000 * fine))
    said = queries.goal({"q4": queries.Answer("q4", entry, tuple(entry.each("migrations")))})
    assert ("**missed**" in said) == (fine > queries.MOST_RATIO)
    assert ("kept" in said) == (fine <= queries.MOST_RATIO)


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


@pytest.mark.parametrize(("fine", "said"), [(1000.0, "at most that, too"), (2000.0, "more for Q4 2.")])
def test_the_goal_of_matched_is_also_told_beside_times_as_long(section, fine, said):
    text = section(queries.section, **{"nexmark-q4": samples.nexmark("q4", fine=fine)}).text
    assert f"Beside quiet times as long as the migration it is {said}" in text


def test_each_strategy_is_shown_on_the_timeline_of_its_own_run(section):
    file = samples.nexmark("q4", spike=9000.0, fine=1000.0)
    del file["runs"]["matched"]
    with pytest.raises(InvalidInput, match='strategy is "matched"; it should be one of the runs'):
        section(queries.section, **{"nexmark-q4": file})


def test_more_bins_are_judged_by_latency_and_duration(section):
    found = section(lambda f: sweeps.section(BINS, f), migrate_bins=samples.every()["migrate-bins"])
    assert (
        "As in the paper, more bins lower the longest latency of `fluid`, `matched` and `paced`" in found.text
    )
    assert (
        "more bins make migrations longer: `fluid` takes 16.0× as long for 16.0× as many steps" in found.text
    )
    assert "Not at every size: `fluid`" in found.text


@pytest.mark.parametrize("sweep", sweeps.SWEEPS, ids=lambda sweep: sweep.experiment)
@pytest.mark.parametrize("grows", [0.5, 1.0, 3.0])
def test_a_sweep_says_what_its_latencies_do(section, sweep, grows):
    sizes = [(4_000_000, 32), (8_000_000, 64)]
    file = samples.sweep(sweep.experiment, sizes, lambda _, i: 2000.0 * (grows if i else 1.0))
    found = section(lambda f: sweeps.section(sweep, f), **{f"migrate-{sweep.experiment}": file})
    assert f"the longest latency {changed(grows)}" in found.text
    assert f"`matched`: latency {changed(grows)}" in found.here
    like, unlike = {
        ("bins", 0.5): ("more bins lower", "do not lower"),
        ("bins", 1.0): ("all at once stays", "do not lower"),
        ("bins", 3.0): ("", "do not lower"),
        ("keys", 0.5): ("", "it does not for"),
        ("keys", 1.0): ("", "it does not for"),
        ("keys", 3.0): ("grows with the keys for `all_at_once`, `fluid`, `matched` and `paced`", ""),
        ("proportional", 0.5): ("does not grow with the state", "all at once falls"),
        ("proportional", 1.0): ("does not grow with the state", "all at once stays"),
        ("proportional", 3.0): ("all at once grows", "`paced` grows**"),
    }[sweep.experiment, grows]
    meaning = found.blocks[-1]
    if like:
        assert like in meaning
        assert "As in the paper" in meaning
    if (sweep.experiment, grows) != ("bins", 0.5):
        assert unlike in meaning


def test_one_size_makes_no_trend(section):
    file = samples.sweep("keys", [(4_000_000, 32)], lambda _, __: 2000.0)
    assert section(lambda f: sweeps.section(KEYS, f), migrate_keys=file).here == "one size only"


def test_migrations_that_did_not_end_are_told_of(section):
    file = samples.sweep("keys", [(4_000_000, 32), (8_000_000, 32)], lambda _, __: 2000.0)
    file["experiments"]["keys"]["results"][1]["ended"] = False
    text = section(lambda f: sweeps.section(KEYS, f), migrate_keys=file).text
    assert "s), cancelled |" in text
    assert "Of `matched`, some migrations took longer" in text


def test_the_load_is_compared_with_the_quiet_time(section):
    found = section(load.section, migrate_load=samples.load())
    assert "`fluid`: grows (2.56×)" in found.here
    assert "the load is hardly seen while nothing moves" in found.text
    assert "| 75,000 | 75.0 % | 1.00 s | 6.00 s | 4.10 s | 4.20 s | 0.68× |" in found.text


def test_memory_is_said_in_bins(section):
    found = section(memory.section, migrate_memory=samples.memory())
    assert found.here.endswith("`all_at_once` 50.0, `matched` 5.0, `paced` −0.4")
    assert "No strategy with small steps holds more than 8 bins" in found.text


def test_memory_that_is_not_less_is_said_so(section):
    file = samples.memory()
    for line in file["experiments"]["memory"]["results"]:
        line["extra_bins"] = samples.spread(60.0 if line["strategy"] == "matched" else 50.0)
    text = section(memory.section, migrate_memory=file).text
    assert "**Unlike in the paper, small steps do not always take less memory**" in text
    assert "More than 8 bins are held with `matched` and `paced`" in text


@pytest.mark.parametrize(
    ("interval", "said"),
    [((-0.05, 0.03), "leaves nothing"), ((-0.09, -0.01), "leaves a cost"), ((0.01, 0.05), "is faster")],
)
def test_what_is_left_is_judged_by_its_interval(section, interval, said):
    found = section(lasting.section, migrate_afterwards=samples.afterwards(0.0, *interval))
    assert said in found.text


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ((1.0, 1.0, 0.98), "Unlike in the paper, many bins cost nothing"),
        (
            (1.0, 1.0, 0.4),
            "As in the paper, many bins cost something: rows a second are fewer with 2²⁰ (0.40×)",
        ),
        ((0.5, 1.0, 1.1), "how noisy the machine was"),
    ],
)
def test_the_overhead_of_bins_is_judged_by_their_rate(section, ratios, said):
    assert said in section(overhead.section, bins=steady.bins(ratios)).text


@pytest.mark.parametrize(
    ("percentiles", "native", "said"),
    [
        ((300.0, 310.0, 305.0), 500.0, "Unlike in the paper, many bins cost nothing"),
        ((300.0, 310.0, 620.0), 500.0, "the 99th percentile is longer with 2²⁰ (2.00×)"),
        ((300.0, 310.0, 305.0), 155.0, "**Spark's own count has the lower latency**"),
        ((300.0, 310.0, 305.0), 155.0, "is 2.00× that of the native operator (Figure 13: 2.46×)"),
    ],
)
def test_latency_by_bins_is_judged_by_its_99th_percentile(section, percentiles, native, said):
    found = section(overhead.section, quiet=steady.quiet(percentiles, native))
    assert said in found.text
    assert "| 2²⁰ |" in found.text
    assert "| native |" in found.text
    assert set(found.pictures) == {"figures-13-15.svg", "figures-13-15-distributions.svg"}


def test_a_native_operator_that_is_faster_is_said_to_be(section):
    text = section(overhead.section, throughput=steady.throughput()).text
    assert "**Spark with quick logs is faster** with 1,000 rows an epoch over 10,000,000 keys (1.14×)" in text
    slower = section(overhead.section, throughput=steady.throughput(quick_logs=10)).text
    assert "Sterna is faster in every line" in slower
    assert "**" not in slower


def test_more_keys_are_compared_with_the_paper(section):
    text = section(overhead.section, state=steady.state()).text
    assert "With 64 times as many keys an epoch grows (1.20×)" in text
    assert "1.27 times as long over 32 times as many keys" in text


def test_peers_that_are_better_are_named(section):
    found = section(peers.section, **steady.peers())
    assert "- 1,024 MB: the median latency before: flink 200, Sterna 300" in found.text
    assert "| Q3 | 500,000 | 2,200,000 | 2,200,000 | 900,000 | 100,000 | 9.00× |\n| Q3 | 123" in found.text
    assert "| Q5 | 200,000 | 30,000 | – | 500,000 | 250,000 | 2.00× |" in found.text
    assert "1,500,000 a second and core packed" in found.text
    assert found.here.startswith("a peer is better in 1 figure")


def test_the_queries_are_judged_by_the_goals_of_the_file(section):
    whole = steady.peers()
    found = section(peers.section, **whole)
    assert "Q3 9.00×, kept and Q8 4.00×, **missed**." in found.text
    assert found.here.endswith(
        "1 of 2 queries with many keys at least 5 times as fast as Spark's own version"
    )
    assert "records a second over many keys: 4.00×, kept." in found.text
    assert "longest wait with the largest state: 0.30×, **missed**." in found.text
    assert "| count over 65,536 keys | records/s | Sterna's ratio to it |" in found.text
    assert (
        "Flink's source alone, with what makes records of its lines, gives 3,000,000 a second." in found.text
    )
    assert "Sterna has 256 bins for this, and not the usual 4,096" in found.text
    unjudged = section(peers.section, **{name: {**one, "goals": {}} for name, one in whole.items()})
    assert "The goal" not in unjudged.text
    assert unjudged.here == "a peer is better in 1 figure"


def test_the_page_and_the_benchmark_have_the_same_goal():
    assert (peers.MANY_KEYS, peers.LEAST_RATIO) == (compared.MANY_KEYS, compared.LEAST_RATIO)


def test_peers_may_all_be_worse_and_some_parts_missing(section):
    found = section(
        peers.section, **{"peers-rescale": {"peer_better": [], "failures": ["flink: no"], "goals": {}}}
    )
    assert "No peer is better" in found.text
    assert "- flink: no" in found.text
    assert "| NEXMark |" not in found.text
    assert "Not measured yet: `sterna bench peers --part queries --json" in found.text


def test_queries_of_another_run_are_told_apart(section):
    whole = steady.peers()
    whole["peers-queries"]["queries"][1]["machine"] = {"day": "2026-11-18", "commit": "abc"}
    found = section(peers.section, **whole)
    assert "Q5: measured in a run apart from the others (2026-11-18, abc)." in found.text
