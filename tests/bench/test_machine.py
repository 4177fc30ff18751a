"""Which commit figures are of."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from sterna.bench.machine import commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")


def git(folder, *words):
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_the_commit_and_whether_something_was_changed(tmp_path):
    file = tmp_path / "__init__.py"
    file.write_text("")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    assert re.fullmatch("[0-9a-f]{7,}", commit(tmp_path))
    file.write_text("other")
    assert re.fullmatch("[0-9a-f]{7,}-dirty", commit(tmp_path))


def test_code_that_is_no_file_of_the_repository_around_it_is_of_no_commit(tmp_path):
    assert commit(tmp_path) is None
    git(tmp_path, "init")
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "__init__.py").write_text("")
    assert commit(installed) is None
