"""Beside other systems: one table of whatever was measured, and who is better than Sterna in what.

The file is a list of lines, or an object whose ``results`` are such a list. A line is an object: ``system`` names what was measured, and everything else that is a
text, a number or a spread with a median is a column. Lines are compared if they agree in all their texts but the system, and in the sizes that ``CASES`` names; an amount is compared if its name
tells which way is better.
"""

from __future__ import annotations

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, bullets, figures_link, missing, table
from sterna.bench.evaluation.words import code
from sterna.readable import DASH, count, duration, milliseconds
from sterna.readable import figures as three_figures

TITLE = "Beside other systems"
PAPER = "a comparison with all-at-once migration only, as what systems that pause and restart come to"
SYSTEM = "system"
SELF = "sterna"
CASES = ("keys", "rows_per_epoch", "rate", "records_per_second_offered", "state_bytes")
HIGHER = ("_per_second",)
LOWER = ("_ms", "seconds", "_mb", "_bytes", "_ratio")
Value = str | float


def section(given: Figures) -> Section:
    """The section; see the module's docstring."""
    entry = given.get("peers")
    if entry is None:
        return missing(TITLE, PAPER, files.command("peers"))
    lines = [
        _values(line) for line in (entry.each() if isinstance(entry.value, list) else entry.each("results"))
    ]
    if not lines:
        return missing(TITLE, PAPER, files.command("peers"))
    columns = [SYSTEM, *dict.fromkeys(name for line in lines for name in line if name != SYSTEM)]
    rows = [[_cell(name, line[name]) if name in line else DASH for name in columns] for line in lines]
    found = better(lines)
    judged = (
        f"**Better than Sterna:**\n\n{bullets(found)}"
        if found
        else "No other system is better than Sterna in any amount that can be compared."
    )
    here = (
        f"other systems are better in {len(found)} {'amount' if len(found) == 1 else 'amounts'}"
        if found
        else "none is better in what can be compared"
    )
    heads = [name.replace("_", " ") for name in columns]
    return Section(
        TITLE,
        PAPER,
        here,
        [
            f"As their benchmark gives them ({figures_link(entry.file)}).",
            table(heads, rows),
            judged,
        ],
    )


def _values(line: Entry) -> dict[str, Value]:
    """The columns of a line; what is neither text nor number is left out."""
    line.text(SYSTEM)
    found: dict[str, Value] = {}
    for name, part in line.items().items():
        if isinstance(part.value, str):
            found[name] = part.value
        elif isinstance(part.value, bool):
            found[name] = "yes" if part.value else "no"
        elif isinstance(part.value, (int, float)):
            found[name] = part.number()
        elif part.has("median"):
            found[name] = part.number("median")
    return found


def better(lines: list[dict[str, Value]]) -> list[str]:
    """Where a system is better than the best of Sterna's lines of the same case."""
    out = []
    ours = [line for line in lines if _is_ours(line)]
    for line in lines:
        same = [one for one in ours if _case(one) == _case(line)]
        if _is_ours(line) or not same:
            continue
        for name, value in line.items():
            others = [one[name] for one in same if isinstance(one.get(name), float)]
            if not isinstance(value, float) or not others or name in CASES:
                continue
            best = _best(name, [other for other in others if isinstance(other, float)])
            if best is not None and best != value and _best(name, [best, value]) == value:
                out.append(
                    f"{line[SYSTEM]} in {code(name)}{_where(line)}: {_cell(name, value)} against {_cell(name, best)}"
                )
    return out


def _best(name: str, values: list[float]) -> float | None:
    if name.endswith(HIGHER):
        return max(values)
    return min(values) if name.endswith(LOWER) else None


def _is_ours(line: dict[str, Value]) -> bool:
    return str(line[SYSTEM]).casefold().startswith(SELF)


def _case(line: dict[str, Value]) -> dict[str, Value]:
    return {
        name: value
        for name, value in line.items()
        if name != SYSTEM and (name in CASES or isinstance(value, str))
    }


def _where(line: dict[str, Value]) -> str:
    said = [f"{name.replace('_', ' ')} {_cell(name, value)}" for name, value in _case(line).items()]
    return f" ({', '.join(said)})" if said else ""


def _cell(name: str, value: Value) -> str:
    if isinstance(value, str):
        return value
    if name.endswith("_ms"):
        return milliseconds(value)
    if name.endswith("seconds"):
        return duration(value)
    return count(value) if value == round(value) else three_figures(value)
