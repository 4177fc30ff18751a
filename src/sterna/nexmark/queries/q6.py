"""Query 6: the average closing price of each seller's last ten auctions."""

from __future__ import annotations

from typing import Any

from sterna.nexmark.queries.closing import closed
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

LAST = 10


def q6(events: Streams) -> Stream:
    """(seller, average), with every auction that closes."""
    sellers = closed(events).key_by("seller", time="expires")
    return sellers.state_machine(last_ten, "prices array<long>", "seller long, average double")


def last_ten(seller: int, auction: dict[str, Any], prices: list[int] | None) -> Any:
    """Keeps ten prices, and tells their average."""
    kept = [*(prices or []), auction["price"]][-LAST:]
    return kept, [(seller, sum(kept) / len(kept))]
