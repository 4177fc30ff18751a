from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import browser as chromium
from bench import evaluation_samples as samples
from sterna.bench.evaluation.page import made
from sterna.bench.evaluation.pictures import KINDS, WIDTH, style
from sterna.bench.evaluation.plots import Band, Mark, Scale, Series, plot
from sterna.bench.evaluation.timelines import MOST_SLOTS, Panel, thinned, timelines
from sterna.bench.latency import SLOT_SECONDS

SVG = "{http://www.w3.org/2000/svg}"
DOCS = Path(__file__).parents[2] / "docs"
positive = st.floats(1e-3, 1e9)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return made(samples.written(tmp_path_factory.mktemp("figures"), samples.every())).pictures


def numbers(root):
    for element in root.iter():
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "d", "viewBox"):
            yield from re.findall(r"[^\s,%MLhzZ]+", element.get(name, ""))


def check(text):
    """A picture that needs nothing, with a title, and everything in its place."""
    root = ET.fromstring(text)
    height = float(root.get("height"))
    assert root.find(f"{SVG}title").text
    assert root.find(f"{SVG}desc").text
    for number in numbers(root):
        assert math.isfinite(float(number)), number
        assert -10 <= float(number) <= max(WIDTH, height, 1000) + 1, number
    assert "url(" not in text
    assert "@import" not in text
    assert re.findall(r"https?:[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    return root


def test_every_picture_needs_nothing_else(pictures):
    for text in pictures.values():
        check(text)
        assert "prefers-color-scheme: dark" in text


def test_every_picture_names_its_axes(pictures):
    for name, text in pictures.items():
        words = {element.text for element in check(text).iter(f"{SVG}text")}
        own = {
            "figures-13-15.svg": "multiple of that with 2¹² bins (logarithmic)",
            "figures-13-15-distributions.svg": "share of records (logarithmic)",
        }
        assert words & {"latency", "longest latency (logarithmic)", "memory", own.get(name)}
        assert words & {
            "time",
            "time in the first round",
            "duration of the migration (logarithmic)",
            "records a second (logarithmic)",
            "bins (logarithmic)",
            "waited longer than (logarithmic)",
        }


def test_the_style_has_the_charts_of_the_report_and_all_kinds():
    assert ".line.max" in style()
    assert "--paper" in style()
    for kind in KINDS:
        assert f".fill-{kind} " in style()
        assert style().count(f"--{kind}:") == 2, "a colour for light and one for dark"


marks = st.lists(
    st.builds(Mark, positive, positive, st.integers(0, 20), st.none() | st.tuples(positive, positive)),
    max_size=6,
)


@settings(deadline=None)
@given(st.lists(marks, max_size=4))
def test_any_amounts_can_be_plotted(lines):
    every = [
        Series(f"<{i}>", kind, tuple(one)) for i, (one, kind) in enumerate(zip(lines, KINDS, strict=False))
    ]
    values = [mark for one in lines for mark in one]
    check(
        plot(
            "x.svg",
            "a < b",
            "told",
            Scale.times("x", [mark.x for mark in values]),
            Scale.ratios("y", [mark.y for mark in values]),
            every,
            shapes=["&"],
            bands=[Band(1.0, 2.0, "band"), Band(1.0, 2.0, "other")],
        ).svg
    )


def test_names_of_bands_do_not_touch():
    bands = [Band(float(i), i + 0.1, "all_at_once") for i in range(4)]
    scale = Scale.amounts("x", [100.0], "s")
    drawn = plot("x.svg", "t", "told", scale, scale, [Series("a", "quiet", (Mark(1.0, 1.0),))], bands=bands)
    places = [
        float(text.get("x")) for text in check(drawn.svg).iter(f"{SVG}text") if text.text == "all_at_once"
    ]
    assert len(places) == 4
    assert all(b - a >= 70 for a, b in itertools.pairwise(places))


@given(st.integers(1, 5000), st.integers(0, 50))
def test_thinning_keeps_the_highest_and_makes_no_outage(count, high):
    slots = [
        {"t": SLOT_SECONDS * i, "records": 2, "max_ms": 5.0 if i % 97 == high else 1.0, "p99_ms": None}
        for i in range(count)
    ]
    thin = thinned({"name": "x", "strategy": "x", "timeline": slots})["timeline"]
    assert sum(slot["records"] for slot in thin) == 2 * count
    assert max(slot["max_ms"] for slot in thin) == max(slot["max_ms"] for slot in slots)
    steps = [b["t"] - a["t"] for a, b in itertools.pairwise(thin)]
    assert all(step <= SLOT_SECONDS * MOST_SLOTS + 1e-9 for step in steps)
    assert len(thin) <= max(321, math.ceil(count / MOST_SLOTS))


def test_a_run_without_records_can_be_drawn():
    drawn = timelines("x.svg", "nothing", [Panel({"name": "x", "strategy": "x", "timeline": []}, None)], 2)
    assert "no latencies were recorded" in drawn.svg
    check(drawn.svg)


# Pairs of texts that touch, and texts that hang over an edge.
BOXES = """
(() => {
  const edge = document.documentElement.getBoundingClientRect();
  const found = [...document.querySelectorAll("text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
  const out = found.filter(([_, b]) => b.left < edge.left || b.right > edge.right || b.bottom > edge.bottom);
  const touch = found.flatMap(([a, p], i) => found.slice(i + 1).filter(([b, q]) =>
    p.left + 1 < q.right && q.left + 1 < p.right && p.top + 3 < q.bottom && q.top + 3 < p.bottom
  ).map(([b]) => `${a} / ${b}`));
  return [out.map(([text]) => text), touch];
})()
"""


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_text_is_cut_off_or_touches_another(pictures, tmp_path, scheme):
    executable = chromium.find()
    if executable is None:
        pytest.skip("no Chromium on this machine: `make test-browser` installs one and runs these tests")
    own = {f"own-{file.name}": file.read_text() for file in (DOCS / "pictures").glob("*.svg")}
    with chromium.Browser(executable, tmp_path / "profile") as browser:
        for name, text in {**pictures, **own}.items():
            path = tmp_path / name
            path.write_text(text)
            browser.open(path, int(WIDTH), scheme)
            assert browser.run(BOXES) == [[], []], name
