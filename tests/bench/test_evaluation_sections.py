from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import evaluation_samples as samples
from bench import steady_samples as steady
from sterna.bench.evaluation import (
    headline,
    judged,
    lasting,
    load,
    memory,
    overhead,
    peers,
    queries,
    sweeps,
    trends,
)
from sterna.bench.evaluation.alike import equal_ratio
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.moves import moves
from sterna.bench.evaluation.words import ALIKE, VISIBLE, changed
from sterna.bench.peers import flink_count
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


@pytest.mark.parametrize(
    ("latency", "quiet", "said"),
    [
        (0.86, 0.75, "of `fluid` falls (0.86×), and no more than that of the quiet time (0.75×)"),
        (0.80, 1.0, "As in the paper, more bins lower the longest latency of `fluid`"),
        (0.95, 1.0, "more bins do not lower that of `fluid`"),
    ],
)
def test_more_bins_are_judged_beside_the_quiet_time(latency, quiet, said):
    trend = trends.Trend("fluid", "from a to b", latency, quiet, 1.0, 1.0, 1.0, 4.0, 1.0)
    meaning = trends.meaning("bins", [trend])
    assert said in meaning
    assert ("As in the paper" in meaning) == (quiet == 1.0 and latency == 0.80)


def test_growth_that_is_less_than_that_of_the_keys_is_not_the_papers():
    def trend(strategy, latency, quiet):
        return trends.Trend(strategy, "from a to b", latency, quiet, 1.0, 1.0, 2.0, 1.0, 16.0)

    said = trends.meaning("keys", [trend("all_at_once", 15.0, 1.0), trend("fluid", 1.8, 1.6)])
    assert "grows with the keys for `all_at_once`, at least in proportion" in said
    assert "**unlike in the paper less than in proportion**: with 16.0× the keys, `fluid` (1.80×)" in said
    assert "With `fluid` it grows no more than that of the quiet time" in said
    assert "The duration grows less than in proportion, too: `all_at_once` (2.00×) and `fluid`" in said


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


def test_strategies_that_the_load_makes_worse_than_all_at_once_are_named(section):
    file = samples.load()
    assert "worse than all at once" not in section(load.section, migrate_load=file).text
    for line in file["experiments"]["load"]["results"]:
        if line["strategy"] == "matched" and line["load_share"] == 0.75:
            line["during_max_ms"] = samples.spread(6300.0)
    text = section(load.section, migrate_load=file).text
    assert "**`matched` is worse than all at once** there (1.05×)" in text


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
        ((310.0, 250.0, 313.0), 500.0, "with many of them, 2²⁰ (1.25×), and as much with few, 2⁴ (1.24×)"),
        ((310.0, 250.0, 500.0), 500.0, "As in the paper, many bins cost something"),
        (
            (300.0, 310.0, 305.0),
            500.0,
            "Spark is given 50.0 % of what it keeps up with (100,000 records a second), Sterna 5.0 % of what",
        ),
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
    assert (peers.SAMPLE, peers.PROBE) == (flink_count.SAMPLE, flink_count.PROBE)


def test_how_much_of_few_keys_is_the_source_is_told():
    few = {"keys": 65_536, "flink_records_per_second": 6, "spark_records_per_second": 50}
    few |= {"sterna_records_per_second": 10, "ratio_to_flink": 1.67}
    told = {"flink_source_records_per_second": 8, "few_keys": few}
    said = peers.sources(Entry("x.json", told))
    assert "75 % of the time that Flink takes for a record" in said
    assert "takes at most 20 % of Sterna's" in said
    assert "Sterna's ratio to Flink (1.67×) compares sources more than counting" in said
    few["flink_records_per_second"] = 2
    assert "compares sources" not in peers.sources(Entry("x.json", told))
    assert peers.sources(Entry("x.json", {"few_keys": few})) == ""


def test_what_part_of_flinks_keys_is_looked_at_is_told(section):
    whole = steady.peers()
    text = section(peers.section, **whole).text
    assert "(one key in 256 seen) |" in text
    assert "one key in 256; and one in 8 of these gets another record" in text


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
