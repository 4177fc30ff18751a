"""The report as a browser shows it. ``STERNA_PICTURES=<folder>`` keeps pictures of it to look at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import browser as chromium
from bench.sample import sample
from sterna.bench.report import render

WIDTHS = (400, 760, 1400)
pytestmark = pytest.mark.browser

LONG = "a name without end " * 8 + "andwithoutanyspace" * 8
REPORTS = {
    "sample": sample(),
    "empty": {"title": "Nothing", "runs": []},
    "sparse": {
        "title": LONG,
        "machine": {"processor": LONG.replace(" ", "")},
        "runs": [
            {"name": LONG, "strategy": LONG, "timeline": []},
            {
                "name": "zeros",
                "strategy": "none",
                "timeline": [{"t": 1.0, "p99_ms": 0, "max_ms": 0, "records": 3}],
            },
            {"name": "one slot", "strategy": "none", "timeline": [{"t": 9.75, "p99_ms": 5, "max_ms": 7e6}]},
        ],
        "outputs_match": False,
    },
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    executable = chromium.find()
    if executable is None:
        pytest.skip("no Chromium on this machine: `make test-browser` installs one and runs these tests")
    with chromium.Browser(executable, tmp_path_factory.mktemp("chromium") / "profile") as running:
        yield running


@pytest.fixture
def shown(browser, tmp_path):
    def show(name, width, scheme="light"):
        path = tmp_path / "report.html"
        path.write_text(render(REPORTS[name]), encoding="utf-8")
        browser.open(path, width, scheme)
        if "STERNA_PICTURES" in os.environ:
            browser.screenshot(Path(os.environ["STERNA_PICTURES"]) / f"{name}-{width}-{scheme}.png")
        return browser

    return show


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_the_page_fits_and_nothing_complains(shown, name, width, scheme):
    page = shown(name, width, scheme)
    assert page.run("innerWidth") == width
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.complaints() == []
    assert [url.split(":")[0] for url in page.requests()] == ["file"]


# Text of an SVG that hangs over its edge scrolls nothing, so it is looked for on its own.
CUT_OFF = """
[...document.querySelectorAll("text, h1, h2, h3, p, td, th, dd, dt")]
  .map((element) => [element.textContent, element.getBoundingClientRect()])
  .filter(([_, box]) => box.width > 0 && (box.left < 0 || box.right > innerWidth + 0.5))
  .map(([text]) => text)
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_no_text_is_cut_off(shown, name, width):
    assert shown(name, width).run(CUT_OFF) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_every_run_has_a_visible_timeline(shown, name, width):
    boxes = shown(name, width).run(
        """[...document.querySelectorAll("figure svg.timeline")].map((chart) => {
            const { width, height } = chart.getBoundingClientRect();
            return { width, height, visible: chart.checkVisibility() };
        })"""
    )
    assert len(boxes) == len(REPORTS[name]["runs"])
    for box in boxes:
        assert box["visible"]
        assert box["width"] > 250
        assert box["height"] > 150


# Relative luminance and contrast as the Web Content Accessibility Guidelines define them.
CONTRASTS = """
(() => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (color) => {
    const [r, g, b] = color.match(/[0-9.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const paper = light(getComputedStyle(document.documentElement).backgroundColor);
  const found = {};
  for (const element of document.querySelectorAll("h1, h2, h3, p, td, th, dt, dd, text")) {
    const style = getComputedStyle(element);
    const ink = light(element instanceof SVGElement ? style.fill : style.color);
    found[`${element.tagName} ${element.getAttribute("class")}`] =
      (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }
  return found;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_paper(shown, scheme):
    contrasts = shown("sample", 1400, scheme).run(CONTRASTS)
    assert len(contrasts) > 8
    assert {what: value for what, value in contrasts.items() if value < 4.5} == {}


def test_light_and_dark_are_different(shown):
    script = "getComputedStyle(document.documentElement).backgroundColor"
    assert shown("sample", 400, "light").run(script) != shown("sample", 400, "dark").run(script)


def test_paper_is_light_even_for_those_who_like_it_dark(shown):
    page = shown("sample", 760, "dark")
    page.media("print", "dark")
    assert page.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(252, 252, 250)"
    assert len(page.call("Page.printToPDF")["data"]) > 10_000


@pytest.mark.parametrize("width", [400, 1400])
def test_the_slot_under_the_pointer_is_told(shown, width):
    page = shown("sample", width)
    box = page.run(
        """(() => {
            const chart = document.querySelector("svg.timeline");
            chart.scrollIntoView({ block: "center" });
            const { left, top, width, height } = chart.getBoundingClientRect();
            return { left, top, width, height };
        })()"""
    )
    page.move(box["left"] + box["width"] / 2, box["top"] + box["height"] / 2)
    told = page.run('document.querySelector("figure .hover").innerText')
    assert told.startswith(("14.2 s · max ", "14.5 s · max ")), told
    assert page.run('document.querySelector("figure").classList.contains("hovered")')
    assert page.complaints() == []


def test_the_page_says_the_same_without_its_script(shown):
    page = shown("sample", 1400)
    spoken = page.run("document.body.innerText")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        without = shown("sample", 1400).call(
            "Runtime.evaluate", expression="document.body.innerText", returnByValue=True
        )["result"]["value"]
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert without == spoken
