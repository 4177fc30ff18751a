"""The tables of the README, from the same files as the page.

Each stands between two comments, ``<!-- table: NAME -->`` and ``<!-- end -->``; the sentences around them are
written by hand. A name that is none raises ``InvalidInput``; a table whose file is missing says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import not_yet, table
from sterna.bench.evaluation.peers import sources
from sterna.bench.evaluation.words import code
from sterna.errors import InvalidInput
from sterna.readable import DASH, milliseconds, size

PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
SYSTEMS = {"sterna": "Sterna", "spark": "Spark", "flink": "Flink 2.3"}


def filled(text: str, figures: Figures) -> str:
    """The README with its tables as the figures are now."""

    def made(match: re.Match[str]) -> str:
        name = match[2]
        if name not in TABLES:
            raise InvalidInput(f"there is no table {name!r} for the README; there are {', '.join(TABLES)}")
        file, make = TABLES[name]
        known = figures.get(file) is not None
        return f"{match[1]}{make(figures) if known else not_yet(files.command(file))}{match[3]}"

    return PLACE.sub(made, text)


def _thousands(value: float) -> str:
    return f"{round(value, -3):,.0f}"


def _bold(text: str, better: bool) -> str:
    """What a peer does better is bold."""
    return f"**{text}**" if better else text


def _entry(figures: Figures, file: str) -> Entry:
    found = figures.get(file)
    assert found is not None
    return found


def _throughput(figures: Figures) -> str:
    told = _entry(figures, "peers-throughput").at("throughput")
    rows = []
    for rates in (told, *([told.at("few_keys")] if told.has("few_keys") else [])):
        mine = rates.maybe("sterna_records_per_second") or 0.0
        cells = [f"{rates.number('keys'):,.0f}"]
        for name in SYSTEMS:
            most = rates.maybe(f"{name}_records_per_second")
            if most is None:
                cells.append(DASH)
                continue
            rounds = [one.number() for one in rates.each(f"{name}_rounds")]
            spread = f"{_thousands(min(rounds))}–{_thousands(max(rounds))}"
            cells.append(f"{_bold(_thousands(most), most > mine)} ({spread})")
        rows.append(cells)
    return table(["keys", *(f"{said}, records/s" for said in SYSTEMS.values())], rows, 0)


def _sources(figures: Figures) -> str:
    """What of the few keys' line is the systems' sources; a sentence and not a table."""
    return sources(_entry(figures, "peers-throughput").at("throughput"))


def _queries(figures: Figures) -> str:
    lines = _entry(figures, "peers-queries").each("queries")
    rates = {side: [line.number(f"{side}_rows_per_second") for line in lines] for side in ("sterna", "spark")}
    mine, theirs = rates["sterna"], rates["spark"]
    ratios = [line.number("ratio") for line in lines]
    rows = [
        ["Sterna", *map(_thousands, mine)],
        ["Spark", *(_bold(_thousands(rate), rate > own) for rate, own in zip(theirs, mine, strict=True))],
        ["ratio", *(f"{ratio:.2f}" if ratio < 1 else f"{ratio:.1f}" for ratio in ratios)],
    ]
    return table(["", *(line.text("query").upper() for line in lines)], rows)


def _rescale(figures: Figures) -> str:
    lines = _entry(figures, "peers-rescale").each("rescale", "results")
    by_state: dict[int, dict[str, Entry]] = {}
    for line in lines:
        by_state.setdefault(int(line.number("state_mb")), {})[line.text("system")] = line

    def cell(known: dict[str, Entry], name: str) -> str:
        if name not in known:
            return DASH
        shown = []
        for figure in ("before_max_ms", "during_max_ms"):
            value = known[name].number(figure)
            ours = known["sterna"].number(figure) if "sterna" in known else 0.0
            shown.append(_bold(f"{value / 1e3:.1f}", value < ours))
        return f"{' → '.join(shown)} s"

    rows = [[_megabytes(most), *(cell(known, name) for name in SYSTEMS)] for most, known in by_state.items()]
    most = max(by_state)
    took = {name: line.number("completed_seconds") for name, line in by_state[most].items()}
    last = [
        _bold(f"{took[name]:.0f} s", took[name] < took.get("sterna", 0.0)) if name in took else DASH
        for name in SYSTEMS
    ]
    rows.append([f"{_megabytes(most)}, complete after", *last])
    return table(["state", *SYSTEMS.values()], rows, 0)


def _megabytes(number: int) -> str:
    return f"{number // 1024} GiB" if number % 1024 == 0 else f"{number} MB"


def _headline(figures: Figures) -> str:
    found = figures.experiment("headline")
    assert found is not None
    rows = []
    for line in found.each("results"):
        ratio, steps = line.at("max_ratio"), [one.number("steps") for one in line.each("rounds")]
        rows.append(
            [
                code(line.text("strategy")),
                _span(steps),
                f"{line.number('seconds', 'median'):,.0f}",
                *(f"{line.number(f'{when}_max_ms', 'median'):,.0f} ms" for when in ("before", "during")),
                f"{ratio.number('median'):.2f} ({ratio.number('least'):.2f}–{ratio.number('greatest'):.2f})",
            ]
        )
    if found.has("offline", "there"):
        ways = [found.at("offline", way) for way in ("there", "back")]
        gentler = min(ways, key=lambda way: way.number("during", "max_ms"))
        rows.append(
            [
                "Spark: stop, offline repartition, restart",
                "",
                _span([way.number("seconds") for way in ways]),
                *(f"{gentler.number(when, 'max_ms'):,.0f} ms" for when in ("before", "during")),
                f"{gentler.number('max_ratio'):.1f}",
            ]
        )
    return table(["", "steps", "seconds", "before", "during", "ratio (least to greatest)"], rows)


def _span(numbers: Sequence[float]) -> str:
    """The least and the greatest, or one of them, if they are alike."""
    least, greatest = (f"{number:,.0f}" for number in (min(numbers), max(numbers)))
    return least if least == greatest else f"{least}–{greatest}"


def _nexmark(figures: Figures) -> str:
    rows = []
    for name in files.QUERIES:
        entry = figures.get(f"nexmark-{name}")
        if entry is None:
            continue
        migrations = entry.each("migrations")
        moved = max(one.number("bytes") for one in migrations)
        rows.append(
            [
                name.upper(),
                _thousands(entry.number("rate")),
                milliseconds(entry.number("steady", "p99_ms")),
                size(moved) if moved else "nothing",
                *(
                    ", ".join(
                        f"{one.number('max_ratio'):.2f}" for one in migrations if one.text("strategy") == way
                    )
                    for way in ("matched", "all_at_once")
                ),
            ]
        )
    return table(["", "events/s", "99 % waited at most", "moved", "`matched`", "`all_at_once`"], rows)


TABLES: dict[str, tuple[str, Callable[[Figures], str]]] = {
    "throughput": ("peers-throughput", _throughput),
    "sources": ("peers-throughput", _sources),
    "queries": ("peers-queries", _queries),
    "rescale": ("peers-rescale", _rescale),
    "headline": ("migrate-headline", _headline),
    "nexmark": ("nexmark-q1", _nexmark),
}
"""By name: the file that has to be there, and the table."""
