from __future__ import annotations

import itertools

import pytest

from sterna.state import RunCache, Store


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "store"))


@pytest.fixture
def cache(store):
    return RunCache(store)


@pytest.fixture
def namer():
    numbers = itertools.count()
    return lambda: f"runs/op/t-{next(numbers)}.arrow"
