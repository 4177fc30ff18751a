"""What ``sterna.session`` says of settings with which Spark does not start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sterna.errors import InvalidInput
from sterna.session import session


@pytest.mark.parametrize("memory", ["1x", "", "much", "4 g", "-1g"])
def test_memory_that_is_none_is_named(memory):
    with pytest.raises(InvalidInput, match="is no amount of memory; write it as 4g or 512m"):
        session(**{"spark.driver.memory": memory})


PROGRAM = """
import sterna
from sterna.errors import SternaError
try:
    sterna.session("nowhere")
except SternaError as error:
    print(error)
"""


def test_a_master_that_is_none_is_named():
    # In a process of its own: this one may have a session, which would be used as it is.
    command = [sys.executable, "-c", PROGRAM]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "Spark did not start with master 'nowhere': " in said
