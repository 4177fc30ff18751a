"""Sterna: moves the state of running PySpark streaming jobs between workers without stopping them."""

from __future__ import annotations

__version__ = "0.1.0"
