"""Figures 5 to 12: the NEXMark queries, a quarter of whose state moves there and back, all at once and in matched steps."""

from __future__ import annotations

from dataclasses import dataclass

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, figures_link, not_yet, shown, table
from sterna.bench.evaluation.paper import QUERIES
from sterna.bench.evaluation.pictures import Picture
from sterna.bench.evaluation.timelines import Panel, run_around, timelines
from sterna.bench.evaluation.words import ALIKE, VISIBLE, code, factor, listed
from sterna.readable import DASH, count, duration, milliseconds, size

TITLE = "Figures 5–12: the NEXMark queries"
PAPER = "without state no spike (Q1, Q2, Q7); with much state all-at-once takes more than two seconds where batched adds up to 100 ms (Q4, Q6)"
HEADS = ("migration", "steps", "moved", "took", "99 % during", "longest before", "longest during", "ratio")


@dataclass(frozen=True)
class Answer:
    """A query as it was measured: its migrations in the order in which they happened."""

    query: str
    entry: Entry
    migrations: tuple[Entry, ...]

    def second(self, strategy: str) -> Entry | None:
        """The last migration with a strategy: the one back, as the paper shows it."""
        found = [one for one in self.migrations if one.text("strategy") == strategy]
        return found[-1] if found else None

    @property
    def fine(self) -> str | None:
        """The strategy with small steps that was run beside all at once; the first one of several."""
        others = [one.text("strategy") for one in self.migrations if one.text("strategy") != "all_at_once"]
        return others[0] if others else None

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
            "The paper runs the queries at four million events a second on four machines and shows the second of two migrations, back to the balanced "
            "configuration, with 2¹² bins. Here every query runs at the highest rate at which its records wait no longer than two seconds, unless a rate was given, and "
            "both migrations are shown. `matched` is what the paper calls batched. Event time is dilated as in the paper: Q5 slides by seconds, Q8 passes 79 seconds of event time in one."
        ),
    ]
    pictures: dict[str, str] = {}
    if known:
        blocks.append(_overview(known))
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
            table(HEADS, map(_cells, answer.migrations)),
            verdict(answer),
        ]
    return Section(TITLE, PAPER, _short(known), blocks, pictures)


def _answer(name: str, figures: Figures) -> Answer | None:
    entry = figures.get(f"nexmark-{name}")
    return None if entry is None else Answer(name, entry, tuple(entry.each("migrations")))


def _setup(answer: Answer) -> str:
    entry = answer.entry
    how = "found by search" if entry.flag("searched") else "given"
    return (
        f"{count(entry.number('rate'))} events a second ({how}), {count(entry.number('workers'))} workers, {count(entry.number('bins'))} bins; one run "
        f"({figures_link(entry.file)}). While nothing moves: 99 % within {milliseconds(entry.number('steady', 'p99_ms'))}, "
        f"longest {milliseconds(entry.number('steady', 'max_ms'))}."
    )


def _cells(one: Entry) -> list[str]:
    took = duration(one.number("seconds"))
    return [
        one.text("name").replace("_", "\\_"),
        count(one.number("steps")),
        size(one.number("bytes")),
        took if one.flag("ended") else f"{took}, cancelled",
        milliseconds(one.number("during", "p99_ms")),
        milliseconds(one.number("before", "max_ms")),
        milliseconds(one.number("during", "max_ms")),
        factor(one.number("max_ratio")),
    ]


def _picture(answer: Answer, number: int) -> Picture:
    timeline = answer.entry.each("timeline")
    panels = [
        Panel(run_around(one, one.text("name"), timeline), one.number("before", "max_ms"))
        for one in answer.migrations
    ]
    return timelines(
        f"figure-{number}.svg", f"NEXMark {answer.query.upper()}: latency while state moves", panels, 2
    )


def _overview(known: dict[str, Answer]) -> str:
    rows = []
    for name, answer in known.items():
        pair = [answer.second("all_at_once"), answer.second(answer.fine) if answer.fine else None]
        ratios = [factor(one.number("max_ratio")) if one else DASH for one in pair]
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
    return f"The second migrations; a ratio is to the longest latency in the quiet time before.\n\n{table(heads, rows)}"


def verdict(answer: Answer) -> str:
    """What the second migrations of a query come to."""
    whole = answer.second("all_at_once")
    fine = answer.second(answer.fine) if answer.fine else None
    if not answer.moved:
        most = max((one.number("max_ratio") for one in answer.migrations), default=0.0)
        noise = (
            "as in the paper, nothing is seen"
            if most <= VISIBLE
            else f"what is seen (up to {factor(most)}) is not due to state, and shows how noisy the machine was"
        )
        return f"No state moves, only the configuration changes; {noise}."
    if whole is None or fine is None:
        return ""
    spike, gentle = whole.positive("max_ratio"), fine.positive("max_ratio")
    name = code(fine.text("strategy"))
    if max(spike, gentle) <= VISIBLE:
        return (
            f"Neither can be told from the quiet time: {size(answer.moved)} fit into an epoch that is there anyway. A state of this size is too small, on this machine, "
            "to tell the strategies apart."
        )
    if gentle * ALIKE < spike:
        seen = "can't be told from the quiet time" if gentle <= VISIBLE else "is visible too, and shorter"
        return f"As in the paper for queries with much state: everything at once is a spike ({factor(spike)}), and {name} {seen} ({factor(gentle)})."
    if spike * ALIKE < gentle:
        return (
            f"**{name} is worse here than everything at once** ({factor(gentle)} against {factor(spike)}): the longest of {count(fine.number('steps'))} epochs, over "
            f"{duration(fine.number('seconds'))}, is longer than that of one, whatever moves in them, and no epoch moves enough to outweigh it."
        )
    return f"There is no difference to speak of between everything at once ({factor(spike)}) and {name} ({factor(gentle)})."


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
    whole, fine = answer.second("all_at_once"), answer.second(answer.fine) if answer.fine else None
    if not answer.moved:
        return "no state moves"
    if whole is None or fine is None:
        return "one strategy only"
    spike, gentle = whole.positive("max_ratio"), fine.positive("max_ratio")
    if max(spike, gentle) <= VISIBLE:
        return "neither strategy is seen"
    if gentle * ALIKE < spike:
        return "small steps are gentler"
    return "all at once is gentler" if spike * ALIKE < gentle else "no difference"
