from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.page import Page
from bench.sample import sample
from sterna.bench.report import render

HOSTILE = "</script><script>alert(1)</script><!--\"'&amp;\x00\x1b]]>"


def drawn(page):
    """Every number by which something is placed."""
    geometry = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "dx", "width", "height", "viewbox", "d")
    for tag, attributes in page.elements:
        if tag in {"svg", "path", "line", "rect", "text", "circle"}:
            for name in geometry:
                yield from re.split(r"[\s,%MLhz]+", attributes.get(name) or "")


def check(report):
    page = Page(render(report))
    for number in filter(None, drawn(page)):
        assert re.fullmatch(r"-?\d+(\.\d+)?(em)?", number), number
        assert math.isfinite(float(number.removesuffix("em")))
        assert abs(float(number.removesuffix("em"))) < 2_000
    charts = [svg for svg in page.all("svg") if "timeline" in svg.get("class", "")]
    assert len(charts) == len(report.get("runs") or [])
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in charts)
    return page


anything = st.one_of(
    st.none(), st.just(0), st.floats(allow_nan=True, allow_infinity=True), st.integers(0, 10**15)
)
moment = st.floats(0, 1e5) | st.floats(allow_nan=True, allow_infinity=True)
latencies = {"p50_ms": anything, "p99_ms": anything, "max_ms": anything}
pairs = st.lists(st.tuples(moment, st.floats(0, 1e12)), max_size=5)
slots = st.lists(
    st.fixed_dictionaries({"t": moment}, optional={**latencies, "records": st.integers(0, 9)}), max_size=12
)
runs = st.fixed_dictionaries(
    {"name": st.text(), "strategy": st.text()},
    optional={
        **latencies,
        **dict.fromkeys(("bins", "bytes", "steps", "epochs", "duration_s", "steady_max_ms"), anything),
        "timeline": slots,
        "migration": st.none() | st.fixed_dictionaries({"start": moment, "end": moment}),
        "gc": pairs,
        "moved": pairs,
        "memory": st.lists(
            st.fixed_dictionaries(
                {"t": moment}, optional={"python_anonymous": anything, "jvm_resident": anything}
            ),
            max_size=5,
        ),
        "note": st.none() | st.text(),
    },
)
reports = st.fixed_dictionaries(
    {},
    optional={
        "title": st.text(),
        "summary": st.text(),
        "machine": st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()), max_size=3),
        "steady": st.fixed_dictionaries({}, optional=latencies),
        "runs": st.lists(runs, max_size=4),
        "outputs_match": st.none() | st.booleans(),
    },
)


@settings(deadline=None)
@given(reports)
def test_any_report_is_a_page_with_finite_numbers_in_it(report):
    check(report)


def test_a_report_may_be_empty():
    assert "How it was measured" in check({}).words()


def test_everything_measured_is_said():
    page = check(sample())
    words = page.words()
    for said in (
        "142 ms",
        "281 ms",
        "322 ms",
        "fluid, there",
        "98.3 MB",
        "37.5×",
        "AMD EPYC 7B13",
        "all right",
    ):
        assert said in words, said
    assert "no answer for" in words  # the restart's outage
    assert len(page.all("figure")) == 9


def test_different_outputs_are_said_aloud():
    page = check(sample() | {"outputs_match": False})
    assert {"class": "wrong"} in page.all("dd")
    assert "some wrong" in page.words()


def test_the_page_asks_nobody_for_anything():
    text = render(sample())
    page = Page(text)
    assert page.all("link", "img", "iframe", "a") == []
    assert all("src" not in script for script in page.all("script"))
    assert "url(" not in text
    assert "@import" not in text
    assert "http" not in text


@pytest.mark.parametrize("where", ["title", "summary", "machine", "name", "strategy", "note"])
def test_text_is_text_wherever_it_stands(where):
    report = sample()
    if where in {"name", "strategy", "note"}:
        report["runs"][0][where] = HOSTILE
    else:
        report[where] = {HOSTILE: [HOSTILE]} if where == "machine" else HOSTILE
    page = check(report)
    assert len(page.all("script")) == 2
    assert "<script>alert(1)" in page.words()


def test_the_slots_for_hovering_are_those_of_the_chart():
    text = render(sample())
    found = re.search(r'<script type="application/json" id="runs">(.*?)</script>', text)
    runs = json.loads(found[1])
    restart = runs[-1]
    assert (
        len(restart["at"])
        == len(restart["said"])
        == sum(1 for s in sample()["runs"][-1]["timeline"] if s["records"])
    )
    assert all(0 <= at <= 1 for run in runs for at in run["at"])
    assert restart["said"][0].startswith("0 ms · max ")


def test_runs_of_very_different_length_have_their_own_axes_of_time():
    report = sample()
    assert "Both axes are" in Page(render(report)).words()
    report["runs"][0]["timeline"].append({"t": 500.0, "max_ms": 300.0, "p99_ms": 200.0, "records": 1})
    assert "The axis of latency is" in Page(render(report)).words()
