"""A section of the evaluation page, made of figures of one's own."""

from __future__ import annotations

import pytest

from bench import evaluation_samples as samples
from sterna.bench.evaluation.entries import Figures


@pytest.fixture
def section(tmp_path):
    def make(of, **files):
        named = {name.replace("_", "-"): value for name, value in files.items()}
        return of(Figures(samples.written(tmp_path / "figures", named)))

    return make
