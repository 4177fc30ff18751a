"""Figures 5 to 12: the NEXMark queries, while a quarter of their state moves.

It moves there and back, all at once and in matched steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from sterna.bench.evaluation import files
from sterna.bench.evaluation.alike import equal_ratio
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, figures_link, not_yet, shown, table
from sterna.bench.evaluation.paper import QUERIES
from sterna.bench.evaluation.pictures import Picture
from sterna.bench.evaluation.timelines import Panel, run_around, timelines
from sterna.bench.evaluation.words import ALIKE, VISIBLE, code, factor, listed
from sterna.nexmark.shape import AUCTIONS, GROUP
from sterna.readable import DASH, count, duration, milliseconds, size

TITLE = "Figures 5–12: the NEXMark queries"
MOST_RATIO = 1.5
UNSEEN, GENTLER, WORSE = "neither strategy is seen", "small steps are gentler", "all at once is gentler"
PAPER = (
    "without state no spike (Q1, Q2, Q7); with much state all-at-once takes more than two seconds where "
    "batched adds up to 100 ms (Q4, Q6)"
)
HEADS = (
    "migration",
    "steps",
    "state",
    "moved",
    "took",
    "99 % during",
    "longest before",
    "longest during",
    "ratio",
    "to times as long",
)


@dataclass(frozen=True)
class Answer:
    """A query as it was measured: its migrations in the order in which they happened."""

    query: str
    entry: Entry
    migrations: tuple[Entry, ...]

    def worst(self, strategy: str) -> Entry | None:
        """The migration with a strategy that made the longest latency grow most, by the stricter ratio."""
        found = [one for one in self.migrations if one.text("strategy") == strategy]
        return max(found, key=self.strict, default=None)

    @property
    def fine(self) -> str | None:
        """The strategy with small steps that was run beside all at once; the first one of several."""
        others = [one.text("strategy") for one in self.migrations if one.text("strategy") != "all_at_once"]
        return others[0] if others else None

    def equal(self, one: Entry) -> float | None:
        """The ratio of a migration to quiet times as long as itself."""
        timelines, strategy = self.entry.items("runs"), one.text("strategy")
        if strategy not in timelines:
            raise one.at("strategy").wrong("one of the runs")
        return equal_ratio(one, timelines[strategy].each("timeline"), self.entry.number("quiet_seconds"))

    def ratios(self, one: Entry) -> tuple[float, float]:
        """The ratio of a migration to the quiet time before, and to quiet times as long as itself."""
        whole, equal = one.positive("max_ratio"), self.equal(one)
        return whole, whole if equal is None else equal

    def strict(self, one: Entry) -> float:
        """The greater of the two ratios."""
        return max(self.ratios(one))

    @property
    def moved(self) -> float:
        """Bytes that moved, at most."""
        return max((one.number("bytes") for one in self.migrations), default=0.0)


def section(figures: Figures) -> Section:
    """The section; see the module's docstring."""
    found = {name: _answer(name, figures) for name in files.QUERIES}
    known = {name: answer for name, answer in found.items() if answer is not None}
    blocks = [
        (
            "The paper runs the queries at four million events a second on four machines and shows the "
            "second of two migrations, back to the balanced configuration, with 2¹² bins. Here every query "
            "runs at the highest rate that a search found, unless a rate was given; below it is said how "
            "long records were to wait at the most, and whether they did. Both migrations are shown. Every "
            "strategy has a run of its own, from an empty state, with the same seconds of warm-up, and moves "
            "at the same seconds, so that all move the same state; all operators that have state take part. "
            "What a state comes to is what its files hold, with what is not merged away yet: a quarter of "
            "the bins is less than a quarter of that, because what moves is merged first. "
            "`matched` is what the paper calls batched. Q5 slides by seconds, as in the paper; the twelve "
            "hours of Q8 pass in nine minutes there (79 times as fast), and here as is said below. The paper "
            "does not tell how many auctions are open at a time, which is the state of Q4 and Q6. Of Q3 it "
            "also shows a timeline of the native query, which can't move its state (Figure 7b); Spark's own "
            "versions of all queries are compared by rows a second instead "
            "([below](#beside-other-systems))."
        ),
    ]
    pictures: dict[str, str] = {}
    if known:
        blocks += [_overview(known), goal(known)]
    for name in files.QUERIES:
        number, said = QUERIES[name]
        blocks += [f"### Figure {number}: {name.upper()}", f"The paper: {said}"]
        answer = known.get(name)
        if answer is None:
            blocks.append(not_yet(files.command(f"nexmark-{name}")))
            continue
        picture = _picture(answer, number)
        pictures[picture.file] = picture.svg
        blocks += [
            shown(picture),
            _setup(answer),
            table(HEADS, [_cells(answer, one) for one in answer.migrations]),
            verdict(answer),
        ]
    return Section(TITLE, PAPER, _short(known), blocks, pictures)


def _answer(name: str, figures: Figures) -> Answer | None:
    entry = figures.get(f"nexmark-{name}")
    return None if entry is None else Answer(name, entry, tuple(entry.each("migrations")))


def _setup(answer: Answer) -> str:
    entry = answer.entry
    bins, paper = entry.number("bins"), entry.number("paper_bins")
    fewer = (
        f" (the paper: {count(paper)}, with which `matched` would take {factor(paper / bins)} as many epochs)"
    )
    return (
        f"{count(entry.number('rate'))} events a second ({_how(entry)}), {count(entry.number('workers'))} "
        f"workers, {count(bins)} bins{fewer if bins < paper else ''} of "
        f"{listed(code(one.text()) for one in entry.each('operators'))}; {count(_open(entry))} "
        "auctions open when state first moves, event time "
        f"{factor(entry.number('dilation'))} as fast as the clock, "
        f"{duration(entry.number('warm_up_seconds'))} of warm-up ({figures_link(entry.file)}). While nothing "
        f"moves: 99 % within {milliseconds(entry.number('steady', 'p99_ms'))}, longest "
        f"{milliseconds(entry.number('steady', 'max_ms'))}{_promise(entry)}."
    )


def _open(entry: Entry) -> int:
    """How many auctions are open when state first moves, about.

    One is open for up to twice the average, evenly: until the first ones have been open for so long, fewer
    are open than later.
    """
    most = entry.number("in_flight")
    average = most * GROUP / AUCTIONS / entry.positive("rate")
    since = entry.number("warm_up_seconds") + entry.number("quiet_seconds")
    part = min(since / (2 * average), 1.0)
    return round(most * part * (2 - part))


def _how(entry: Entry) -> str:
    """Where the rate comes from."""
    if not entry.flag("searched"):
        return "given"
    search = entry.at("search")
    ended = "which converged" if search.flag("converged") else "which did not converge"
    times = int(search.number("reductions"))
    lowered = f", lowered {times} times" if times > 1 else ", lowered once" if times else ""
    return f"found by search, {ended}{lowered}"


def _promise(entry: Entry) -> str:
    """Whether records waited as long as they may while nothing moved."""
    if not entry.flag("searched"):
        return ""
    wanted = entry.number("search", "latency_ms")
    kept = entry.number("steady", "max_ms") <= wanted
    return f", {'within' if kept else '**not within**'} the {milliseconds(wanted)} that the search was for"


def _cells(answer: Answer, one: Entry) -> list[str]:
    took = duration(one.number("seconds"))
    return [
        one.text("name").replace("_", "\\_"),
        count(one.number("steps")),
        size(one.number("state_bytes")),
        size(one.number("bytes")),
        took if one.flag("ended") else f"{took}, cancelled",
        milliseconds(one.number("during", "p99_ms")),
        milliseconds(one.number("before", "max_ms")),
        milliseconds(one.number("during", "max_ms")),
        factor(one.number("max_ratio")),
        factor(answer.equal(one)),
    ]


def _picture(answer: Answer, number: int) -> Picture:
    lines = {name: run.each("timeline") for name, run in answer.entry.items("runs").items()}
    panels = []
    for one in answer.migrations:
        strategy = one.text("strategy")
        if strategy not in lines:
            raise one.at("strategy").wrong("one of the runs")
        panels.append(
            Panel(run_around(one, one.text("name"), lines[strategy]), one.number("before", "max_ms"))
        )
    return timelines(
        f"figure-{number}.svg", f"NEXMark {answer.query.upper()}: latency while state moves", panels, 2
    )


def _overview(known: dict[str, Answer]) -> str:
    rows = []
    for name, answer in known.items():
        pair = [answer.worst("all_at_once"), answer.worst(answer.fine) if answer.fine else None]
        ratios = [
            f"{factor(one.number('max_ratio'))}, {factor(answer.equal(one))}" if one else DASH for one in pair
        ]
        longest = [milliseconds(one.number("during", "max_ms")) if one else DASH for one in pair]
        rows.append(
            [
                name.upper(),
                count(answer.entry.number("rate")),
                size(answer.moved),
                longest[0],
                ratios[0],
                longest[1],
                ratios[1],
            ]
        )
    heads = ["query", "events/s", "moved", "all at once, longest", "ratio", "in steps, longest", "ratio"]
    return (
        "The worse of the two migrations with each strategy. Ratios are to the longest latency in the quiet "
        "time before, and to that of quiet times as long as the migration (the median over all of them "
        "within that quiet time), because the longest latency of a long time is longer than that of a short "
        "one. The worse migration is the one with the greater of all these ratios; small steps are called "
        "gentler or worse where they are by both ratios."
        f"\n\n{table(heads, rows)}"
    )


def goal(known: dict[str, Answer]) -> str:
    """Which of the queries keep to the goal that `matched` is not told from quiet times."""
    said = []
    for name, answer in known.items():
        worst = answer.worst("matched")
        if worst is None:
            continue
        whole, equal = answer.ratios(worst)
        kept = "kept" if answer.strict(worst) <= MOST_RATIO else "**missed**"
        nothing = "" if answer.moved else " (nothing moves)"
        said.append(f"{name.upper()} {factor(whole)} and {factor(equal)}, {kept}{nothing}")
    if not said:
        return ""
    return (
        "The goal that Sterna has set itself: with `matched`, there and back, the longest latency is at most "
        f"{MOST_RATIO} times that of the quiet time before. Here it is judged by the greater of both ratios, "
        f"so also beside quiet times as long as the migration. {'; '.join(said)}."
    )


def verdict(answer: Answer) -> str:
    """What the migrations of a query come to, by the worse of the two with each strategy."""
    whole = answer.worst("all_at_once")
    fine = answer.worst(answer.fine) if answer.fine else None
    if not answer.moved:
        most = max((answer.strict(one) for one in answer.migrations), default=0.0)
        noise = (
            "as in the paper, nothing is seen"
            if most <= VISIBLE
            else (
                f"what is seen (up to {factor(most)}) is not due to state, and shows how noisy the machine "
                "was"
            )
        )
        return f"No state moves, only the configuration changes; {noise}."
    if whole is None or fine is None:
        return ""
    spike, gentle = (listed(map(factor, answer.ratios(one))) for one in (whole, fine))
    name = code(fine.text("strategy"))
    kind = _compared(answer, whole, fine)
    if kind == UNSEEN:
        return (
            f"Neither can be told from the quiet time: {size(answer.moved)} fit into an epoch that is there "
            "anyway. A state of this size is too small, on this machine, to tell the strategies apart."
        )
    if kind == GENTLER:
        seen = (
            "can't be told from the quiet time"
            if answer.strict(fine) <= VISIBLE
            else "is visible too, and shorter"
        )
        return (
            f"As in the paper for queries with much state: everything at once is a spike ({spike}), "
            f"and {name} {seen} ({gentle})."
        )
    if kind == WORSE:
        return (
            f"**{name} is worse here than everything at once** ({gentle} against {spike}): "
            f"the longest of {count(fine.number('steps'))} epochs, over {duration(fine.number('seconds'))}, "
            "is longer than that of one, whatever moves in them, and no epoch moves enough to outweigh it."
        )
    return (
        f"There is no difference to speak of, by both ratios, between everything at once ({spike}) and "
        f"{name} ({gentle})."
    )


def _compared(answer: Answer, whole: Entry, fine: Entry) -> str:
    """Small steps beside everything at once.

    They are called gentler or worse only if they are by both ratios.
    """
    if max(answer.strict(whole), answer.strict(fine)) <= VISIBLE:
        return UNSEEN
    pairs = list(zip(answer.ratios(whole), answer.ratios(fine), strict=True))
    if all(spike * ALIKE < gentle for spike, gentle in pairs):
        return WORSE
    return GENTLER if all(gentle * ALIKE < spike for spike, gentle in pairs) else "no difference"


def _short(known: dict[str, Answer]) -> str:
    if not known:
        return "not measured yet"
    groups: dict[str, list[str]] = {}
    for name, answer in known.items():
        groups.setdefault(_kind(answer), []).append(name.upper())
    said = "; ".join(f"{listed(names)}: {kind}" for kind, names in groups.items())
    left = len(files.QUERIES) - len(known)
    return f"{said}; {left} not measured yet" if left else said


def _kind(answer: Answer) -> str:
    whole, fine = answer.worst("all_at_once"), answer.worst(answer.fine) if answer.fine else None
    if not answer.moved:
        return "no state moves"
    if whole is None or fine is None:
        return "one strategy only"
    return _compared(answer, whole, fine)
