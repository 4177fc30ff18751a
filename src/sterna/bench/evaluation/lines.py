"""Table 1: lines of code of the NEXMark queries on Sterna and on Spark's own operators.

They are counted in the source.
"""

from __future__ import annotations

from pathlib import Path

from sterna.bench.evaluation.markdown import Section, table
from sterna.bench.evaluation.paper import LINES
from sterna.bench.evaluation.words import listed
from sterna.errors import InvalidInput
from sterna.nexmark.lines import lines

TITLE = "Table 1: lines of code of the NEXMark queries"
PAPER = "most queries are shorter on Megaphone than on timely dataflow alone"


def counted(folder: Path) -> dict[str, tuple[int, int]]:
    """For each query the lines on Spark's own operators and on Sterna.

    ``folder`` holds the source of ``sterna.nexmark``.
    """
    by_name = {line["query"]: line for line in lines(folder)}
    found = {query: (by_name[query]["spark_whole"], by_name[query]["sterna_whole"]) for query in LINES}
    for query, pair in found.items():
        if not all(pair):
            raise InvalidInput(f"there is no {query} in {folder}; it should hold the queries' source")
    return found


def section(folder: Path) -> Section:
    """The section; see the module's docstring."""
    found = counted(folder)
    heads = ["", *(query.upper() for query in LINES)]
    rows = [
        ["timely dataflow (paper)", *(str(native) for native, _ in LINES.values())],
        ["Megaphone (paper)", *(str(ours) for _, ours in LINES.values())],
        ["Spark's own operators", *(str(native) for native, _ in found.values())],
        ["Sterna", *(str(ours) for _, ours in found.values())],
    ]
    shorter = [query.upper() for query, (native, ours) in found.items() if ours < native]
    longer = [query.upper() for query, (native, ours) in found.items() if ours > native]
    here = (
        f"shorter than on Spark's own operators: {listed(shorter) or 'none'}; longer: "
        f"{listed(longer) or 'none'}; {beside_megaphone(found)}"
    )
    return Section(
        TITLE,
        PAPER,
        here,
        [
            table(heads, rows),
            (
                "Counted in the source: every query with the functions and constants that it needs, some of "
                "which it shares with others, without imports, comments and docstrings. How the paper "
                "counted is not known, and the languages differ (Rust, Python), so a pair of one source (the "
                "first two lines, or the last two) says more than one of both."
            ),
            _meaning(shorter, longer),
            (
                f"Sterna set out to be shorter than Megaphone's {min(ours for _, ours in LINES.values())} to "
                f"{max(ours for _, ours in LINES.values())} lines: {beside_megaphone(found)}."
            ),
        ],
    )


def beside_megaphone(found: dict[str, tuple[int, int]]) -> str:
    """For which queries Sterna needs fewer lines than Megaphone, and for which more.

    Example:
        >>> beside_megaphone({"q1": (2, 9), "q2": (2, 18), "q5": (13, 96)})
        'fewer lines than Megaphone: Q1 (9 against 16); **more**: Q5 (96 against 46); as many: Q2'
    """
    pairs = {query.upper(): (ours, LINES[query][1]) for query, (_, ours) in found.items()}
    told = {query: f"{query} ({ours} against {theirs})" for query, (ours, theirs) in pairs.items()}
    fewer = [told[query] for query, (ours, theirs) in pairs.items() if ours < theirs]
    more = [told[query] for query, (ours, theirs) in pairs.items() if ours > theirs]
    same = [query for query, (ours, theirs) in pairs.items() if ours == theirs]
    said = f"fewer lines than Megaphone: {listed(fewer) or 'none'}; **more**: {listed(more) or 'none'}"
    return f"{said}; as many: {listed(same)}" if same else said


def _meaning(shorter: list[str], longer: list[str]) -> str:
    parts = []
    if longer:
        parts.append(
            f"**Spark's own words are shorter** for {listed(longer)}. In the paper Megaphone saves lines "
            "because it manages state and pending records, which timely dataflow leaves to its users; "
            "Spark's operators manage theirs already, and have a word each for windows and joins, where "
            "Sterna's queries spell out what is kept and when it is due, which is what has to move."
        )
    if shorter:
        parts.append(f"Sterna is shorter for {listed(shorter)}.")
    parts.append(
        "Spark's Q4 and Q6 are not built-in operators alone: their last step is a `transformWithState` in "
        "Python."
    )
    return " ".join(parts)
