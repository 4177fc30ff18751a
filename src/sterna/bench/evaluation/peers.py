"""Beside other systems: NEXMark, a count by key, what a rescale costs, and where a peer is better.

NEXMark is compared with Spark's own operators, the count by key and the rescale with Spark and with Flink.
"""

from __future__ import annotations

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, bullets, figures_link, not_yet, table
from sterna.bench.evaluation.words import factor, listed
from sterna.bench.peers.better import peer_better
from sterna.errors import InvalidInput
from sterna.readable import DASH, count, duration, milliseconds

TITLE = "Beside other systems"
PAPER = "a comparison with all-at-once migration only, as what systems that pause and restart come to"
SYSTEMS = ("sterna", "spark", "flink")
QUERY_SIDES = SYSTEMS[:2]
MANY_KEYS, LEAST_RATIO = ("q3", "q4", "q6", "q8", "nbq8"), 5.0
"""The goal of ``bench.peers.queries``."""
SAMPLE, PROBE = 256, 8
"""Of ``bench.peers.flink_count``: which of Flink's keys are looked at, and which of these after a rescale."""


def section(given: Figures) -> Section:
    """The section; see the module's docstring."""
    known = {name: entry for name in PARTS if (entry := given.get(f"peers-{name}")) is not None}
    if not known:
        commands = [not_yet(files.command(f"peers-{name}")) for name in PARTS]
        return Section(TITLE, PAPER, "not measured yet", [f"The paper: {PAPER}.", *commands])
    better = [line for name, entry in known.items() for line in _better(name, entry)]
    judged = (
        f"**Where a peer is better than Sterna:**\n\n{bullets(better)}"
        if better
        else "No peer is better than Sterna in any of these figures."
    )
    here = (
        f"a peer is better in {len(better)} {'figure' if len(better) == 1 else 'figures'}"
        if better
        else "no peer is better in what was measured"
    )
    judged_queries = _judged(known["queries"]) if "queries" in known else {}
    if judged_queries:
        here += (
            f"; {sum(judged_queries.values())} of {len(judged_queries)} queries with many keys at least "
            f"{LEAST_RATIO:g} times as fast as Spark's own version"
        )
    said = (
        "How each system is set up, and what is measured, is in [peers.md](peers.md); medians of the rounds, "
        "which are all in the files."
    )
    parts = [_part(name, known.get(name)) for name in PARTS]
    return Section(TITLE, PAPER, here, [said, *parts, judged])


def _better(name: str, entry: Entry) -> list[str]:
    """The figures of a part in which a peer is better."""
    try:
        return peer_better(entry.value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{entry.file} is not laid out as `{files.COMMANDS[f'peers-{name}']}` writes it: {error!r}"
        ) from error


def _part(name: str, entry: Entry | None) -> str:
    """What a part says, and where it is from."""
    if entry is None:
        return not_yet(files.command(f"peers-{name}"))
    failures = [line.text() for line in entry.each("failures")]
    failed = f"What failed:\n\n{bullets(failures)}" if failures else ""
    told = PARTS[name](entry) if entry.has(name) else ""
    link = f"({figures_link(entry.file)})"
    return "\n\n".join(one for one in (told, failed, link) if one)


def _router(entry: Entry) -> str:
    told = {way: count(entry.number("router", f"{way}_per_second_and_core")) for way in ("packed", "rows")}
    return (
        f"NEXMark's events into Sterna's router: {told['packed']} a second and core packed, {told['rows']} "
        "as rows."
    )


def _queries(entry: Entry) -> str:
    rows = [
        [
            line.text("query").upper(),
            count(line.number("rows_per_epoch")),
            *(count(line.maybe(f"{side}_state_rows")) for side in QUERY_SIDES),
            *(count(line.number(f"{side}_rows_per_second")) for side in QUERY_SIDES),
            factor(line.number("ratio")),
        ]
        for query in entry.each("queries")
        for line in (query, *(query.each("other_sizes") if query.has("other_sizes") else []))
    ]
    heads = [
        "NEXMark",
        "rows an epoch",
        "Sterna, rows of state",
        "Spark, rows of state",
        "Sterna, rows/s",
        "Spark, rows/s",
        "ratio",
    ]
    said = (
        "Rows are those that a query reads; those of state are what is there in the end, where it is known "
        "(Spark does not count them, and only what joins keep follows from its reports)."
    )
    apart = [line for line in entry.each("queries") if line.has("machine")]
    if apart:
        runs = {f"{line.text('machine', 'day')}, {line.text('machine', 'commit')}" for line in apart}
        names = listed([line.text("query").upper() for line in apart])
        said += f" {names}: measured in a run apart from the others ({'; '.join(sorted(runs))})."
    return "\n\n".join(part for part in (table(heads, rows), said, _goal(entry)) if part)


def _goal(entry: Entry) -> str:
    """Which of the queries with many keys in their state are as much faster as they should be."""
    said = [
        f"{name.upper()} {factor(entry.number('goals', f'{name}_ratio'))}, {'kept' if kept else '**missed**'}"
        for name, kept in _judged(entry).items()
    ]
    if not said:
        return ""
    return (
        f"The goal that Sterna has set itself: at least {LEAST_RATIO:g} times Spark's rows a second where "
        f"the state has many keys. {listed(said)}."
    )


def _judged(entry: Entry) -> dict[str, bool]:
    """The queries that the goal is about, as far as they were measured, and whether it was kept."""
    flags = {name: ("goals", f"{name}_at_least_{LEAST_RATIO:g}") for name in MANY_KEYS}
    return {name: entry.flag(*place) for name, place in flags.items() if entry.has(*place)}


def _throughput(entry: Entry) -> str:
    told = entry.at("throughput")
    counts = [told, *([told.at("few_keys")] if told.has("few_keys") else [])]
    goal = _kept(entry, "rate_to_flink", "rate_to_flink_at_least_1.5")
    said = f"The goal: at least 1.5 times Flink's records a second over many keys: {goal}." if goal else ""
    return "\n\n".join(part for part in (*map(_count, counts), sources(told), said) if part)


def sources(told: Entry) -> str:
    """How much of each count is its source, as far as the throughput of Flink's source alone tells."""
    if not told.has("flink_source_records_per_second"):
        return ""
    source = told.positive("flink_source_records_per_second")
    said = f"Flink's source alone, with what makes records of its lines, gives {count(source)} a second."
    few = told.at("few_keys") if told.has("few_keys") else None
    if few is None or not few.has("flink_records_per_second"):
        return said
    flink = few.positive("flink_records_per_second")
    said += (
        f" Over {count(few.number('keys'))} keys that is {100 * flink / source:.0f} % of the time that Flink "
        f"takes for a record ({count(flink)} a second)"
    )
    spark, sterna = (few.maybe(f"{name}_records_per_second") for name in ("spark", "sterna"))
    if spark is None or sterna is None or spark <= sterna:
        return f"{said}."
    compared = (
        f" So there Sterna's ratio to Flink ({factor(few.maybe('ratio_to_flink'))}) compares sources more "
        "than counting."
        if flink > source / 2
        else ""
    )
    return (
        f"{said}, while what Sterna and Spark read takes at most {100 * sterna / spark:.0f} % of Sterna's, "
        f"as Spark counts {count(spark)} a second with it.{compared}"
    )


def _kept(entry: Entry, figure: str, flag: str) -> str:
    """A goal's figure and whether it was kept; nothing if it was not measured."""
    if not entry.has("goals", flag):
        return ""
    return f"{factor(entry.number('goals', figure))}, {'kept' if entry.flag('goals', flag) else '**missed**'}"


def _count(told: Entry) -> str:
    rows = []
    for name in SYSTEMS:
        if told.has(f"{name}_records_per_second"):
            ratio = told.maybe(f"ratio_to_{name}")
            rate = count(told.number(f"{name}_records_per_second"))
            rows.append([name, rate, DASH if ratio is None else factor(ratio)])
    return table([f"count over {count(told.number('keys'))} keys", "records/s", "Sterna's ratio to it"], rows)


def _rescale(entry: Entry) -> str:
    rows = [
        [
            f"{count(line.number('state_mb'))} MB",
            line.text("system"),
            *(
                milliseconds(line.number(name))
                for name in ("before_p50_ms", "before_max_ms", "during_max_ms")
            ),
            duration(line.number("completed_seconds")),
            duration(line.number("back_seconds")) if line.has("back_seconds") else "not seen",
            _wrong(line),
        ]
        for line in entry.each("rescale", "results")
    ]
    first, last = (count(entry.number("rescale", name)) for name in ("from", "to"))
    heads = [
        f"from {first} workers to {last}",
        "",
        "median before",
        "longest before",
        "longest during",
        "complete after",
        "latency as before after",
        "keys lost or doubled",
    ]
    goal = _kept(entry, "longest_wait_to_flink", "longest_wait_to_flink_at_most_0.2")
    said = (
        f"The goal: at most a fifth of Flink's longest wait with the largest state: {goal}." if goal else ""
    )
    looked = (
        "Lost or doubled keys: Sterna's and Spark's are all looked at. Of Flink's, only those that it prints "
        f"are, one key in {SAMPLE}; and one in {PROBE} of these gets another record after the rescale, "
        "because a line from before it does not say what the state holds after it."
        if any(line.text("system") == "flink" for line in entry.each("rescale", "results"))
        else ""
    )
    parts = (table(heads, rows, words=2), looked, _shares(entry), _bins(entry), said)
    return "\n\n".join(part for part in parts if part)


def _wrong(line: Entry) -> str:
    """How many keys are wrong, and of which ones."""
    found = count(line.number("wrong_keys"))
    return f"{found} (one key in {SAMPLE} seen)" if line.text("system") == "flink" else found


def _bins(entry: Entry) -> str:
    """How many bins Sterna has while it rescales, where it otherwise has others."""
    place = ("configuration", "sterna")
    bins, usual = (entry.maybe(*place, *more) for more in (("for a rescale", "bins"), ("bins",)))
    if bins is None or usual is None or bins == usual:
        return ""
    return (
        f"Sterna has {count(bins)} bins for this, and not the usual {count(usual)}: two move in a step, a "
        "step takes an epoch, and with more of them it would take as many times longer."
    )


def _shares(entry: Entry) -> str:
    """What each system keeps up with over the largest state, and how much of that it was given."""
    most = entry.items("rescale", "ceilings") if entry.has("rescale", "ceilings") else {}
    lines = entry.each("rescale", "results")
    if not most or not lines:
        return ""
    rate = lines[-1].positive("rate")
    said = listed(
        f"{name} {count(one.positive())} ({100 * rate / one.positive():.0f} %)" for name, one in most.items()
    )
    return (
        f"All are given {count(rate)} records a second, which is not the same share of what each keeps up "
        f"with over the largest state: {said}. Who has more to spare catches up sooner."
    )


PARTS = {"router": _router, "queries": _queries, "throughput": _throughput, "rescale": _rescale}
