from __future__ import annotations

import pytest

from sterna.bench.evaluation.lines import counted, section
from sterna.bench.evaluation.page import SOURCE
from sterna.bench.evaluation.paper import LINES
from sterna.errors import InvalidInput
from sterna.nexmark.sourcelines import Source

FIRST = '''"""A module."""

from __future__ import annotations

from room.second import helper, LIMIT as MOST

TEXT = (
    "one"
    "two"
)


@decorated
def first(value: Unused) -> Unused:
    """Says nothing.

    Nothing at all.
    """
    # a comment
    from room.second import late

    return helper(value) + late()  # another


def alone():

    return """a
string"""


class Unused:
    pass
'''
SECOND = """LIMIT = 3
def helper(value):
    return value + LIMIT + helper(value)


def late():
    return 1


def unused():
    return 2
"""


@pytest.fixture
def source(tmp_path):
    files = {"room.first": FIRST, "room.second": SECOND}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return Source({name: tmp_path / name for name in files})


@pytest.mark.parametrize(
    ("module", "name", "lines"),
    [
        ("room.first", "alone", 3),
        ("room.first", "TEXT", 4),
        ("room.second", "late", 2),
        ("room.second", "helper", 3),  # with LIMIT, and itself once
        ("room.first", "first", 3 + 3 + 2),  # with helper and late, without what annotations name
        ("room.first", "nothing", 0),
        ("room.third", "first", 0),
    ],
)
def test_lines_are_those_with_code_and_of_what_it_needs(source, module, name, lines):
    assert source.lines(module, name) == lines


def test_all_queries_of_the_paper_are_counted():
    found = counted(SOURCE)
    assert found.keys() == LINES.keys()
    assert all(native > 0 and ours > 0 for native, ours in found.values())


def test_the_table_has_the_paper_beside_ours():
    text = section(SOURCE).text
    assert "| Megaphone (paper) | 16 | 18 | 41 | 74 | 46 | 74 | 54 | 29 |" in text
    assert f"Q5 ({counted(SOURCE)['q5'][1]} against 46)" in text
    assert "**more**: none" in text
    assert f"| Sterna | {' | '.join(str(ours) for _, ours in counted(SOURCE).values())} |" in text


def test_a_source_without_the_queries_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="there is no q1 in"):
        counted(tmp_path)
