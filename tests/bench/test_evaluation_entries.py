from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench import evaluation_samples as samples
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.page import made
from sterna.bench.evaluation.paper import LINES
from sterna.errors import InvalidInput

EVERY = samples.every()
FILES = [name for name in EVERY if not name.startswith("nexmark") or name == "nexmark-q4"]
GONE = object()


@pytest.mark.parametrize(
    "text", ["", "{", "nonsense", '{"results": [NaN]}', '{"results": [Infinity]}', "\udce4"]
)
def test_what_is_not_json_is_refused_by_name(tmp_path, text):
    (tmp_path / "bins.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidInput, match=r"bins\.json is not JSON"):
        made(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="there is no folder"):
        made(tmp_path / "nowhere")


def test_files_that_nobody_asks_for_do_not_matter(tmp_path):
    (tmp_path / "other.json").write_text("{")
    assert "Evaluation" in made(tmp_path).text


def test_an_error_says_where_and_what(tmp_path):
    file = copy.deepcopy(EVERY["migrate-load"])
    file["experiments"]["load"]["results"][2]["seconds"]["median"] = "three"
    samples.written(tmp_path, {"migrate-load": file})
    with pytest.raises(InvalidInput) as caught:
        made(tmp_path)
    assert str(caught.value) == (
        'migrate-load.json: experiments.load.results[2].seconds.median is "three"; it should be a number'
    )


def places(value, path=()):
    """All paths in a value; of long lists only those of the first parts."""
    inside = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for step, part in inside:
        yield (*path, step)
        yield from places(part, (*path, step))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Queries that are quickly counted."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "queries").mkdir()
    for query in LINES:
        (folder / "queries" / f"{query}.py").write_text(f"def {query}():\n    return 1\n")
    (folder / "native.py").write_text("\n".join(f"def {query}():\n    return 1" for query in LINES))
    return folder


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_damaged_the_page_is_made_or_the_file_named(tmp_path, source, data):
    name = data.draw(st.sampled_from(FILES))
    file = copy.deepcopy(EVERY[name])
    path = data.draw(st.sampled_from(list(places(file))))
    inside = file
    for step in path[:-1]:
        inside = inside[step]
    instead = data.draw(st.sampled_from([GONE, None, "text", 0, -1, 1e300, [], {}, True]))
    if instead is GONE:
        del inside[path[-1]]
    else:
        inside[path[-1]] = instead
    for old in tmp_path.iterdir():
        old.unlink()
    samples.written(tmp_path, {name: file})
    try:
        assert made(tmp_path, source).text
    except InvalidInput as error:
        assert f"{name}.json" in str(error)  # noqa: PT017 - either outcome is right


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    )
)
def test_an_entry_gives_what_was_asked_for_or_refuses(value):
    entry = Entry("x.json", value)
    for ask, kind in (
        (entry.number, float),
        (entry.text, str),
        (entry.flag, bool),
        (entry.each, list),
        (entry.items, dict),
    ):
        for path in ((), ("a",), (0,), ("a", 0, "b")):
            try:
                assert isinstance(ask(*path), kind)
            except InvalidInput as error:
                assert str(error).startswith("x.json: ")  # noqa: PT017 - either outcome is right


def test_a_file_that_is_missing_is_nothing(tmp_path):
    assert Figures(tmp_path).get("bins") is None
    assert Figures(tmp_path).experiment("load") is None
