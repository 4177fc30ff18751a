"""What there is to say of a bin that alone has more than the share of a worker.

That is a key that nothing parts, or what more bins would do. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sterna.configuration import MAX_BITS, Configuration
from sterna.keys import Keys
from sterna.statistics import Floats

FINER = 6
"""How many times the number of bins is doubled, at most.

That is done to find a number that parts a bin in which no key dominates.
"""


@dataclass(frozen=True)
class Hot:
    """A bin that is too hot for any plan.

    Attributes:
        words: what it is, and what can be done about it.
        facts: the ``bin``; the hash of the ``key`` that dominates it, if one does, and its ``share`` of all
            rows; how many ``bins`` would part it, where that helps.
    """

    words: str
    facts: dict[str, Any]


def hottest(rows: Floats, keys: Keys, here: Configuration, tau: float | str) -> Hot | None:
    """The fullest bin, if it alone has more than a worker may have.

    Args:
        rows: of each bin.
        keys: the heaviest keys of the same rows.
        here: where the bins are.
        tau: how much more than the mean a worker may have.
    """
    from sterna import planning  # noqa: PLC0415 - SciPy takes a while to load, and most queries have no such bin

    extra = 0.0 if isinstance(tau, str) else tau
    bin_, total = int(np.argmax(rows)), float(rows.sum())
    mean = total / here.workers
    limit = (1 + extra) * mean
    if rows[bin_] <= limit:
        return None
    words = f"bin {bin_} alone has {rows[bin_] / mean:.2f} times the mean of a worker"
    sketch = planning.Sketch(max(len(keys.hashes), 1), keys.hashes, keys.rows, keys.error, keys.total)
    found = next((one for one in planning.hot(rows, sketch, here.workers, extra) if one.bin == bin_), None)
    if found is None:
        bins = _enough(rows, sketch, here, bin_, limit)
        more = "" if bins is None else f", as sterna.bins({bins}) would if its keys are light"
        return Hot(
            f"{words}; more bins may part it{more}",
            {"bin": bin_} if bins is None else {"bin": bin_, "bins": bins},
        )
    share = found.load / total
    facts = {"bin": bin_, "key": found.hash, "share": round(share, 3)}
    words = f"{words}, in which one key has {100 * share:.0f} % of the rows"
    if found.alone:
        return Hot(f"{words}: no number of bins parts it", facts)
    if found.bins is None:
        return Hot(f"{words}, and others are so near to it that no number of bins parts them", facts)
    return Hot(
        f"{words}: sterna.bins({found.bins}) parts it from its neighbours", {**facts, "bins": found.bins}
    )


def _enough(rows: Floats, sketch: Any, here: Configuration, bin_: int, limit: float) -> int | None:
    """How many bins there must be so that every part of a bin is within the limit.

    That is as far as its keys are known.
    """
    from sterna import planning  # noqa: PLC0415 - as above

    for bits in range(here.bits + 1, min(here.bits + FINER, MAX_BITS) + 1):
        *_, fine = planning.refined(
            here.owners.astype(np.int64), np.zeros(here.bins), rows, 1 << bits, sketch
        )
        if fine.reshape(here.bins, -1)[bin_].max() <= limit:
            return 1 << bits
    return None
