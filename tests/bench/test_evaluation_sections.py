from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import evaluation_samples as samples
from bench import steady_samples as steady
from sterna.bench.evaluation import headline, judged, lasting, load, memory, overhead, sweeps, trends
from sterna.bench.evaluation.entries import Entry
from sterna.bench.evaluation.moves import moves
from sterna.bench.evaluation.words import VISIBLE, changed

BINS, KEYS, PROPORTIONAL = sweeps.SWEEPS


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
        ("bins", 0.5): ("more bins lower", "is not lower than with fewest"),
        ("bins", 1.0): ("all at once stays", "is not lower than with fewest"),
        ("bins", 3.0): ("", "is not lower than with fewest"),
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
        (0.95, 1.0, "with most bins that of `fluid` is not lower than with fewest"),
    ],
)
def test_more_bins_are_judged_beside_the_quiet_time(latency, quiet, said):
    trend = trends.Trend("fluid", "from a to b", latency, quiet, 1.0, 1.0, 1.0, 4.0, 1.0, latency, "b")
    meaning = trends.meaning("bins", [trend])
    assert said in meaning
    assert ("As in the paper" in meaning) == (quiet == 1.0 and latency == 0.80)


def test_a_latency_that_falls_and_grows_again_is_said_to():
    trend = trends.Trend("matched", "from a to c", 1.3, 0.9, 1.0, 1.0, 9.0, 9.0, 1.0, 0.75, "b")
    meaning = trends.meaning("bins", [trend])
    assert "More bins lower the longest latency of `matched` up to b (0.75×), and no further." in meaning
    assert "with most bins that of `matched` is not lower than with fewest" in meaning


def test_growth_that_is_less_than_that_of_the_keys_is_not_the_papers():
    def trend(strategy, latency, quiet):
        return trends.Trend(strategy, "from a to b", latency, quiet, 1.0, 1.0, 2.0, 1.0, 16.0, 1.0, "a")

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
