from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import evaluation_samples as samples
from bench import steady_samples as steady
from sterna.bench.evaluation import readme
from sterna.bench.evaluation.entries import Figures
from sterna.bench.evaluation.files import COMMANDS, command
from sterna.bench.evaluation.markdown import slug
from sterna.bench.evaluation.page import made, stale, write
from sterna.cli import app
from sterna.errors import InvalidInput

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = [
    "Figure 1: what moving a quarter of the state does to latency",
    "Figures 5–12: the NEXMark queries",
    "Table 1: lines of code of the NEXMark queries",
    "Figures 13–15: overhead while nothing moves",
    "Figure 16: more bins, the same state",
    "Figure 17: more keys, the same bins",
    "Figure 18: more keys, and bins in proportion",
    "Figure 19: offered load against the longest latency",
    "Figure 20: memory while state moves",
    "Afterwards: what is left of a migration",
    "Beside other systems",
    "What a micro-batch engine cannot do",
]


@pytest.fixture
def page(tmp_path):
    return lambda files: made(samples.written(tmp_path / "figures", files))


def test_the_page_in_the_repository_is_what_its_figures_say():
    page = made(DOCS / "figures", tables_in=DOCS.parent / "README.md")
    assert set(page.others) == {DOCS.parent / "README.md"}
    assert stale(page, DOCS / "evaluation.md") == [], "run `sterna bench page`"


def test_every_section_is_there_whatever_is_measured(page, tmp_path):
    for files in ({}, samples.every()):
        text = page(files).text
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert headings == ["In short", "Machines", *SECTIONS]


def test_what_is_not_measured_says_so_in_one_line_with_its_command(page):
    text = page({}).text
    for name in COMMANDS:
        assert text.count(f"Not measured yet: `{command(name)}`\n") == 1, name
    assert page({}).pictures == {}
    assert "Not measured yet" not in page(samples.every()).text


@pytest.mark.parametrize("name", COMMANDS)
def test_one_file_is_enough_for_its_section(page, name):
    text = page({name: samples.every()[name]}).text
    assert f"`{command(name)}`" not in text
    assert f"(figures/{name}.json)" in text
    assert text.count("Not measured yet") == len(COMMANDS) - 1


def test_the_same_files_give_the_same_page(page, tmp_path):
    first, second = page(samples.every()), page(samples.every())
    assert first == second


def test_all_pictures_are_shown_and_all_shown_are_made(page):
    whole = page(samples.every())
    assert sorted(re.findall(r"\]\(pictures/([^)]*)\)", whole.text)) == sorted(whole.pictures)
    figures = ["1", *(str(n) for n in range(5, 13)), "16", "17", "18", "19"]
    assert {f"figure-{number}.svg" for number in figures} <= whole.pictures.keys()
    assert {"figures-13-15.svg", "figure-20-1000000.svg", "figure-20-4000000.svg"} <= whole.pictures.keys()


def test_links_within_the_page_lead_somewhere(page):
    text = page(samples.every()).text
    headings = {slug(title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert len(links) == len(SECTIONS)
    assert links <= headings
    for file in re.findall(r"\]\(([a-z]+\.md)\)", text):
        assert (DOCS / file).is_file()


def test_tables_have_as_many_cells_as_heads(page):
    for block in page(samples.every()).text.split("\n\n"):
        lines = block.splitlines()
        if lines and lines[0].startswith("|"):
            assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {lines[1].count("|")}


def test_writing_writes_what_changed_and_removes_pictures_of_an_earlier_page(page, tmp_path):
    file = tmp_path / "evaluation.md"
    whole = page(samples.every())
    assert stale(whole, file) == write(whole, file) != []
    assert stale(whole, file) == write(whole, file) == []
    mine = tmp_path / "pictures" / "mine.svg"
    mine.write_text("<svg/>")
    smaller = made(samples.written(tmp_path / "fewer", {"quiet": steady.quiet()}))
    assert tmp_path / "pictures" / "figure-16.svg" in stale(smaller, file)
    write(smaller, file)
    left = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert left == {"mine.svg", "figures-13-15.svg", "figures-13-15-distributions.svg"}


def test_the_command_writes_and_checks(tmp_path):
    figures = samples.written(tmp_path / "figures", {"bins": steady.bins()})
    file = tmp_path / "evaluation.md"

    def run(*arguments):
        return CliRunner().invoke(
            app, ["bench", "page", "--figures", str(figures), "--page", str(file), *arguments]
        )

    found = run("--check", "--format", "json")
    assert found.exit_code == 1
    assert not file.exists()
    stale_files = json.loads(found.stdout)["files"]
    assert str(file) in stale_files
    assert json.loads(run("--json").stdout) == {"written": True, "files": stale_files}
    found = run("--check", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout) == {"written": False, "files": []}
    file.write_text(file.read_text().replace("1.02×", "1.20×"))
    result = run("--check")
    assert result.exit_code == 1
    assert str(file) in result.stdout
    assert "sterna bench page" in result.stderr


README = """# It

Before.

<!-- table: {name} -->
old
<!-- end -->

After.
"""


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("throughput", "| 65,536 | 4,000,000 (3,000,000–5,000,000) | **5,000,000** (4,000,000–6,000,000) |"),
        ("queries", "| Spark | 100,000 | 250,000 |\n| ratio | 9.0 | 2.0 |"),
        (
            "rescale",
            "| 1 GiB | 0.9 → 1.1 s | 0.9 → 1.1 s | 0.9 → 9.0 s |\n| 1 GiB, complete after | 20 s | 20 s |",
        ),
        ("headline", "| `all_at_once` | 1 | 3 | 1,000 ms | 5,000 ms | 5.00 (4.50–6.00) |"),
        ("headline", "| Spark: stop, offline repartition, restart |  | 40 | 1,900 ms | 30,000 ms | 15.8 |"),
        ("nexmark", "| Q1 | 60,000 | 900 ms | nothing | 1.05, 1.05 | 4.00, 4.00 |"),
        ("nexmark", "| Q8 | 60,000 | 900 ms | 50.0 MB | 1.05, 1.05 | 4.00, 4.00 |"),
    ],
)
def test_the_tables_of_a_readme_are_those_of_the_figures(tmp_path, name, row):
    file = tmp_path / "README.md"
    file.write_text(README.format(name=name))
    (tmp_path / "docs").mkdir()
    figures = samples.written(tmp_path / "figures", samples.every())
    command = ["bench", "page", "--figures", str(figures), "--page", str(tmp_path / "docs" / "page.md")]
    assert CliRunner().invoke(app, [*command, "--check"]).exit_code == 1
    assert CliRunner().invoke(app, command).exit_code == 0
    text = file.read_text()
    assert row in text
    assert "old" not in text
    assert text.startswith("# It\n\nBefore.\n\n<!-- table: ")
    assert text.endswith("\n<!-- end -->\n\nAfter.\n")
    assert CliRunner().invoke(app, [*command, "--check"]).exit_code == 0


def test_a_readme_says_what_is_not_measured_and_has_no_unknown_tables(tmp_path):
    figures = Figures(samples.written(tmp_path / "figures", {}))
    text = readme.filled(README.format(name="rescale"), figures)
    assert f"Not measured yet: `{command('peers-rescale')}`" in text
    with pytest.raises(InvalidInput, match="no table 'other' for the README"):
        readme.filled(README.format(name="other"), figures)


def test_the_command_names_a_damaged_file(tmp_path):
    figures = samples.written(tmp_path / "figures", {})
    (figures / "bins.json").write_text("{")
    result = CliRunner().invoke(
        app, ["bench", "page", "--figures", str(figures), "--page", str(tmp_path / "page.md")]
    )
    assert result.exit_code == 1
    assert "bins.json is not JSON" in result.stderr.replace("\n", "")
