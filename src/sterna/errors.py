"""What can go wrong, by kind.

Every error names the thing that was wrong, where it is, and what to do about it. All of them derive from
``SternaError``, so one ``except`` catches whatever Sterna raises on purpose.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

LONGEST_QUOTE = 200


class SternaError(Exception):
    """Anything that Sterna raises on purpose."""


class InvalidInput(SternaError, ValueError):
    """The caller asked for something that does not make sense; nothing was changed."""


class UpdateRefused(InvalidInput):
    """A configuration update can't be taken: unknown bin or worker, or an epoch that is already frozen."""


class StateError(SternaError):
    """A file of the state or of the checkpoint is missing, damaged or can't be written."""


class DamagedError(StateError):
    """A file is there, and what is in it is not what was written."""


class CheckpointError(SternaError):
    """The checkpoint belongs to another dataflow, another version, or another running query."""


class FencedError(CheckpointError):
    """A later incarnation of the query has taken the checkpoint over; this one must stop."""


class FoldError(SternaError):
    """A user's fold raised, returned the wrong schema, or differs between two attempts."""


class SinkError(SternaError):
    """A sink failed; the epoch is prepared and its output will be offered again after a restart."""


class EpochError(SternaError):
    """The receipts of an epoch are not what was expected; the epoch was not committed."""


def short(value: Any) -> str:
    """A value as an error quotes it: what people recognise it by, and never pages of it.

    >>> short("name"), len(short([7] * 1000))
    ("'name'", 200)
    """
    told = repr(value)
    return told if len(told) <= LONGEST_QUOTE else f"{told[: LONGEST_QUOTE - 3]}..."


def check_whole(what: str, value: Any, least: int) -> None:
    """Raises ``InvalidInput`` unless it is a whole number, not less than the least."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInput(f"{what} must be a whole number from {least} on, not {short(value)}")
