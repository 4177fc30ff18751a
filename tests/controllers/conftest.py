"""Twins that are closed when the test ends, as for the tests of the twin itself."""

from __future__ import annotations

from twin.conftest import start

__all__ = ["start"]
