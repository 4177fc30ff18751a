"""A picture of the page: an SVG file that needs nothing else.

It has a background of its own, light or dark as the reader likes it. The charts of the HTML report are used
as they are, with the part of its style sheet that is theirs. A picture is 900 units wide; text in it is 13
high, so it can be read at that width.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from xml.etree import ElementTree as ET

from sterna.bench.markup import number, tag

WIDTH, PAD = 900.0, 24.0
LINE = 18.0
CHARACTERS = 122
"""So many characters of the small text fit into a line, about."""
MADE_BY = '<!-- Made by "sterna bench page": do not edit. -->'
SHARED = re.compile(r"/\* charts \*/\n(.*?)/\* end of charts \*/", re.DOTALL)
OWN = """
:root {
  --all_at_once: #c24e00; --matched: #0068a8; --paced: #00775a; --fluid: #a3468a; --batched: #806300;
  --quiet: #56616f; --spark: #1b2330; --other: #7a4dc0;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --all_at_once: #ff9a57; --matched: #6db6f0; --paced: #3fcba0; --fluid: #eba0d2; --batched: #e3c04a;
    --quiet: #a2acb9; --spark: #e7eaee; --other: #bda1f5;
  }
}
svg { font-family: ui-sans-serif, system-ui, "Helvetica Neue", Arial, sans-serif; \
font-variant-numeric: tabular-nums; }
text { font-size: 13px; fill: var(--soft); }
.paper { fill: var(--paper); stroke: var(--rule); }
.title { font-size: 17px; font-weight: 650; fill: var(--ink); }
.name { font-size: 14px; font-weight: 650; fill: var(--ink); }
.chart { overflow: visible; }
.ink { fill: var(--ink); }
.moving { fill: var(--move); font-weight: 600; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.series { fill: none; stroke-width: 2px; stroke-linejoin: round; stroke-linecap: round; }
.whisker { stroke-width: 1px; opacity: 0.55; }
.mark { stroke: var(--paper); stroke-width: 1px; }
.grey { fill: var(--soft); }
"""
KINDS = {
    "all_at_once": "",
    "matched": "",
    "paced": "8 4",
    "fluid": "2 5",
    "batched": "8 4 2 4",
    "quiet": "3 5",
    "spark": "",
    "other": "10 3",
}
"""The kinds of series, and how their lines are broken, so that colour is not all that tells them apart."""


@dataclass(frozen=True)
class Picture:
    """A file, and what it shows in a sentence for those who do not see it."""

    file: str
    told: str
    svg: str


def picture(
    file: str, title: str, told: str, parts: Sequence[ET.Element], height: float, notes: Sequence[str] = ()
) -> Picture:
    """A picture with a title and, below it, some lines of notes; parts are drawn below ``top(notes)``."""
    texts = [
        tag("text", line, x=PAD, y=52 + LINE * i, class_="note") for i, line in enumerate(wrapped(notes))
    ]
    root = tag(
        "svg",
        tag("title", title),
        tag("desc", told),
        tag("style", f"\n{style()}"),
        tag("rect", class_="paper", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=8),
        tag("text", title, x=PAD, y=32, class_="title"),
        *texts,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        width=WIDTH,
        height=height,
        role="img",
    )
    ET.indent(root, " ")
    return Picture(file, told, f"{MADE_BY}\n{ET.tostring(root, encoding='unicode')}\n")


def wrapped(notes: Sequence[str]) -> list[str]:
    """Notes as lines that fit."""
    return [line for note in notes for line in textwrap.wrap(note, CHARACTERS)]


def top(notes: Sequence[str]) -> float:
    """Where the room below title and notes begins."""
    return 44 + LINE * len(wrapped(notes))


@cache
def style() -> str:
    """The style sheet: what the report's charts need, and what is ours."""
    sheet = files("sterna.bench").joinpath("report.css").read_text(encoding="utf-8")
    kinds = [
        f".{kind} {{ stroke: var(--{kind}); }}\n.fill-{kind} {{ fill: var(--{kind}); }}"
        + (f"\n.series.{kind} {{ stroke-dasharray: {dash}; }}" if dash else "")
        for kind, dash in KINDS.items()
    ]
    return "\n".join([*SHARED.findall(sheet), OWN.strip(), *kinds, ""])
