"""The page as a whole: what is in it, writing it, and whether what is written is up to date.

The tables of the README are written with it (``readme``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sterna.bench.evaluation import (
    headline,
    lasting,
    limits,
    lines,
    load,
    machines,
    memory,
    overhead,
    peers,
    queries,
    readme,
    sweeps,
)
from sterna.bench.evaluation.entries import Figures
from sterna.bench.evaluation.markdown import Section, slug, table
from sterna.bench.evaluation.paper import REFERENCE
from sterna.bench.evaluation.pictures import MADE_BY
from sterna.bench.evaluation.words import ALIKE, VISIBLE
from sterna.errors import InvalidInput

SOURCE = Path(__file__).resolve().parents[2] / "nexmark"
"""The source of the queries."""
PICTURES = "pictures"
COMMAND = "sterna bench page"


@dataclass(frozen=True)
class Page:
    """The text, the pictures by the names of their files, and other texts by their paths."""

    text: str
    pictures: dict[str, str]
    others: dict[Path, str] = field(default_factory=dict)


def made(figures: Path, source: Path = SOURCE, tables_in: Path | None = None) -> Page:
    """The page from a folder of figures; the same files give the same page, byte for byte.

    Args:
        figures: the folder with what benchmarks print with ``--json``; a file that is missing is told of in
            the page.
        source: the source of ``sterna.nexmark``, whose lines are counted.
        tables_in: the README whose tables are filled, if there is one.

    Raises:
        InvalidInput: a file is not JSON, or not of the layout that its benchmark writes.
    """
    given = Figures(figures)
    sections = _sections(given, source)
    pictures = {file: svg for section in sections for file, svg in section.pictures.items()}
    parts = [
        "# Evaluation",
        f"<!-- Made by `{COMMAND}` from the files in `figures/`: do not edit. -->",
        (
            f"The figures and tables of the Megaphone paper ({REFERENCE}), measured with Sterna on one "
            f"machine, beside what the paper says. `{COMMAND}` makes this page and its pictures from the "
            "output of the benchmarks in [figures](figures), and `make test` checks that it is up to date: "
            "what was measured here comes from these files, and sentences that judge it are chosen by it. "
            "Amounts of the paper are from its text and tables; where it has only a curve, it is described."
        ),
        (
            f"An amount is called about the same as another within {round(100 * (ALIKE - 1))} %, and a "
            f"latency within {round(100 * (VISIBLE - 1))} % of the quiet time's is not told apart from it."
        ),
        "## In short",
        table(["", "the paper", "here"], [_brief(section) for section in sections], words=3),
        f"What can't be reached at all is [at the end](#{slug(limits.TITLE)}).",
        machines.chapter(given),
        *(section.text for section in sections),
        limits.chapter(given),
    ]
    others = {}
    if tables_in is not None and tables_in.is_file():
        others[tables_in] = readme.filled(tables_in.read_text(encoding="utf-8"), given)
    return Page("\n\n".join(parts) + "\n", pictures, others)


def _sections(given: Figures, source: Path) -> list[Section]:
    return [
        headline.section(given),
        queries.section(given),
        lines.section(source),
        overhead.section(given),
        *(sweeps.section(sweep, given) for sweep in sweeps.SWEEPS),
        load.section(given),
        memory.section(given),
        lasting.section(given),
        peers.section(given),
    ]


def _brief(section: Section) -> list[str]:
    name = section.title.split(":", 1)[0]
    return [f"[{name}](#{slug(section.title)})", section.paper, section.here]


def write(page: Page, file: Path) -> list[Path]:
    """Writes the page and its pictures, and removes pictures that an earlier page had.

    Returns what was written or removed.
    """
    if not file.parent.is_dir():
        raise InvalidInput(f"{file} can't be written: there is no folder {file.parent}")
    changed = stale(page, file)
    wanted = _wanted(page, file)
    for path in changed:
        if path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8", newline="\n")
        else:
            path.unlink()
    return changed


def stale(page: Page, file: Path) -> list[Path]:
    """The files that are not what they should be.

    They are missing, different, or pictures of an earlier page that are in no page any more.
    """
    wanted = _wanted(page, file)
    wrong = [
        path for path, text in wanted.items() if not path.is_file() or path.read_bytes() != text.encode()
    ]
    left = [
        path
        for path in sorted((file.parent / PICTURES).glob("*.svg"))
        if path not in wanted and path.read_bytes().startswith(MADE_BY.encode())
    ]
    return [*wrong, *left]


def _wanted(page: Page, file: Path) -> dict[Path, str]:
    pictures = {file.parent / PICTURES / name: svg for name, svg in page.pictures.items()}
    return {file: page.text, **pictures, **page.others}
