"""Text of the page: tables, pictures, links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sterna.bench.evaluation.pictures import Picture


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        title: its heading.
        paper: what the paper finds, in a sentence, for the overview.
        here: what was found here, in a sentence, for the overview.
        blocks: its paragraphs, tables and pictures as Markdown.
        pictures: the files that it shows, by name.
    """

    title: str
    paper: str
    here: str
    blocks: Sequence[str]
    pictures: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The section as Markdown."""
        return "\n\n".join([f"## {self.title}", *(block for block in self.blocks if block)])


def missing(title: str, paper: str, command: str) -> Section:
    """A section whose figures are not there yet."""
    return Section(title, paper, "not measured yet", [f"The paper: {paper}.", not_yet(command)])


def not_yet(command: str) -> str:
    """One line that says so, and how to measure."""
    return f"Not measured yet: `{command}`"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    r"""A table: the first so many columns to the left, the others, with amounts, to the right.

    >>> print(table(["who", "ms"], [["a | b", "12"]]))
    | who | ms |
    |---|---:|
    | a \| b | 12 |
    """
    lines = [list(heads), *(list(row) for row in rows)]
    out = [f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines]
    rule = f"|{'---|' * words}{'---:|' * (len(heads) - words)}"
    return "\n".join([out[0], rule, *out[1:]])


def shown(picture: Picture) -> str:
    """A picture in the page."""
    return f"![{_bare(picture.told)}](pictures/{picture.file})"


def bullets(items: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {item}" for item in items if item)


def figures_link(file: str) -> str:
    """A link to a file of figures."""
    return f"[{file}](figures/{file})"


def slug(title: str) -> str:
    """What a heading's own link is called.

    >>> slug("Figures 5–12: the queries")
    'figures-512-the-queries'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _bare(text: str) -> str:
    return re.sub(r"[\[\]\n`]", " ", text)
