"""Slow tests tell how far they are, whether or not pytest shows what tests print."""

from __future__ import annotations

import sys
import time

import pytest


@pytest.fixture
def say(capfd):
    began = time.monotonic()

    def tell(text):
        with capfd.disabled():
            sys.stderr.write(f"\n{time.monotonic() - began:6.0f} s  {text}")
            sys.stderr.flush()

    return tell
