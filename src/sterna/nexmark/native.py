"""The same queries on Spark's own operators, where Spark can express them.

What it can't is said in ``WHY_NOT``.

Each takes the three streams as DataFrames and gives the DataFrame of its answers, to be written in append
mode. Watermarks have no delay, as in the queries of Sterna. An auction is open for at most ``longest``, which
Spark needs to know to let go of bids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOW = "0 seconds"
WHY_NOT = {
    "q4": (
        "its second step, a running average without a window, can't follow another stateful operator in "
        "append mode, and no other mode allows several: that step is a transformWithState in Python."
    ),
    "q6": (
        "a seller's last ten auctions are neither an aggregate nor a window: that step is a "
        "transformWithState in Python."
    ),
    "q7": (
        "no aggregate keeps ties, and grouping by price first keeps all bids of a minute: that step is a "
        "transformWithState in pandas, which is 1.6 times as fast."
    ),
    "nbqx": (
        "a session can't span two streams of a join: for sessions both streams are united, sessions collect "
        "lists, and the pairs are made of these."
    ),
}
"""What is not Spark's built-in operators alone, and why."""


@dataclass(frozen=True)
class Frames:
    """Persons, auctions and bids, and how long an auction may be open."""

    persons: DataFrame
    auctions: DataFrame
    bids: DataFrame
    longest: str = "10 minutes"


def q1(events: Frames) -> DataFrame:
    """Bids with their price in euros."""
    return events.bids.select("auction", "bidder", (F.col("price") * 0.908).alias("price"), "dateTime")


def q2(events: Frames) -> DataFrame:
    """Bids on some auctions."""
    return events.bids.where("auction % 123 = 0").select("auction", "price")


def q3(events: Frames) -> DataFrame:
    """Who sells something of category 10 in Oregon, Idaho or California?"""
    sellers = events.persons.where("state IN ('OR', 'ID', 'CA')").select("id", "name", "city", "state")
    auctions = events.auctions.where("category = 10").select("seller", F.col("id").alias("auction"))
    return sellers.join(auctions, sellers.id == auctions.seller).drop("seller")


def closed(events: Frames) -> DataFrame:
    """Auctions that close, with their price; event time is the time at which they expire."""
    auctions = events.auctions.select(
        "id", "seller", "category", "reserve", F.col("dateTime").alias("begun"), "expires"
    )
    # The newest auction expires in the future: a bid on it may come until then.
    auctions = auctions.withWatermark("expires", events.longest)
    bids = events.bids.select("auction", "price", "dateTime").withWatermark("dateTime", NOW)
    open_ = (
        "id = auction AND price >= reserve AND dateTime >= begun AND dateTime < expires "
        f"AND dateTime >= expires - INTERVAL {events.longest}"
    )
    offers = auctions.join(bids, F.expr(open_))
    return offers.groupBy("id", "seller", "category", "expires").agg(F.max("price").alias("price"))


def q4(events: Frames) -> DataFrame:
    """The average closing price of each category."""
    from sterna.nexmark.processors import Average  # noqa: PLC0415 - needs protobuf and grpcio

    return (
        closed(events)
        .groupBy("category")
        .transformWithState(Average(), "category long, average double", "Append", "None")
    )


def q5(events: Frames) -> DataFrame:
    """Which auctions have had most bids in the last minute?"""
    counts = _counts(events, "1 second")
    ranked = counts.groupBy("window").agg(
        F.max("n").alias("n"), F.collect_list(F.struct("n", "auction")).alias("all")
    )
    winners = F.expr("filter(all, one -> one.n = n)")
    return ranked.select("window", F.explode(winners).alias("one")).select(
        "one.auction", "window.start", "window.end", "one.n"
    )


def _counts(events: Frames, slide: str) -> DataFrame:
    """In panes first, so that what is in sixty windows is a count and not each of its bids."""
    bids = events.bids.withWatermark("dateTime", NOW)
    panes = bids.groupBy(F.window("dateTime", slide).alias("pane"), "auction").agg(F.count("*").alias("n"))
    return panes.groupBy(F.window("pane", "60 seconds", slide), "auction").agg(F.sum("n").alias("n"))


def q6(events: Frames) -> DataFrame:
    """The average closing price of each seller's last ten auctions."""
    from sterna.nexmark.processors import LastTen  # noqa: PLC0415 - as above

    return (
        closed(events)
        .groupBy("seller")
        .transformWithState(LastTen(), "seller long, average double", "Append", "None")
    )


def q7(events: Frames) -> DataFrame:
    """The highest bids of each minute."""
    from sterna.nexmark.processors import Highest  # noqa: PLC0415 - as above

    minute = F.expr("unix_micros(dateTime) div 60000000").alias("minute")
    bids = events.bids.withWatermark("dateTime", NOW).select(minute, "auction", "bidder", "price", "dateTime")
    best = bids.groupBy("minute").transformWithStateInPandas(
        Highest(), "minute long, auction long, bidder long, price long", "Append", "EventTime"
    )
    window = F.expr("timestamp_micros(minute * 60000000)").alias("window")
    return best.select(window, "auction", "bidder", "price")


def q8(events: Frames) -> DataFrame:
    """Who offers something within the twelve hours in which they registered?"""
    return _new_sellers(events).select("id", "window", "name", "auction_reserve")


def nbq8(events: Frames) -> DataFrame:
    """The same, with everything about both."""
    whole = _new_sellers(events)
    return whole.select(
        "id", "window", *[name for name in whole.columns if name not in ("id", "window", "seller")]
    )


def _new_sellers(events: Frames) -> DataFrame:
    persons, auctions = (_in_windows(side, "12 hours") for side in (events.persons, events.auctions))
    renamed = auctions.select(
        *[
            F.col(name).alias(name if name in ("seller", "span") else f"auction_{name}")
            for name in auctions.columns
        ]
    )
    joined = persons.join(renamed, (persons.id == renamed.seller) & (persons.span == renamed.span))
    kept = [name for name in [*persons.columns, *renamed.columns] if name != "span"]
    return joined.select(persons.span.start.alias("window"), *kept)


def _in_windows(side: DataFrame, length: str) -> DataFrame:
    """With the window that a row is in.

    Only that has event time then, because no stream may have two such columns.
    """
    plain = F.timestamp_micros(F.unix_micros("dateTime"))
    return side.withWatermark("dateTime", NOW).select(
        F.window("dateTime", length).alias("span"),
        *[plain.alias(name) if name == "dateTime" else F.col(name) for name in side.columns],
    )


def nbq5(events: Frames) -> DataFrame:
    """How many bids has every auction had in the last minute?"""
    return _counts(events, "10 seconds").select("auction", "window.start", "window.end", "n")


def nbqx(events: Frames) -> DataFrame:
    """Auctions and their bids, joined in sessions of four kinds and in windows of four hours."""
    auctions = events.auctions.withWatermark("dateTime", NOW).select(
        F.col("id").alias("auction"),
        "dateTime",
        F.col("seller"),
        F.lit(None).cast("struct<bidder: long, price: long>").alias("bid"),
    )
    bids = events.bids.withWatermark("dateTime", NOW).select(
        "auction",
        "dateTime",
        F.lit(None).cast("long").alias("seller"),
        F.struct("bidder", "price").alias("bid"),
    )
    both = auctions.union(bids)
    whole = _in_fixed_windows(events)
    for gap in ("30 minutes", "60 minutes", "90 minutes", "120 minutes"):
        whole = whole.union(_in_sessions(both, gap))
    return whole


def _in_fixed_windows(events: Frames) -> DataFrame:
    auctions, bids = (_in_windows(side, "4 hours") for side in (events.auctions, events.bids))
    pairs = auctions.join(bids, (auctions.id == bids.auction) & (auctions.span == bids.span))
    window = auctions.span.start.alias("window")
    return pairs.select("auction", window, F.lit("fixed 4 hours").alias("gap"), "seller", "bidder", "price")


def _in_sessions(both: DataFrame, gap: str) -> DataFrame:
    collected = both.groupBy("auction", F.session_window("dateTime", gap).alias("window")).agg(
        F.collect_list("seller").alias("sellers"), F.collect_list("bid").alias("bids")
    )
    exploded = collected.select(
        "auction",
        F.col("window.start").alias("window"),
        F.lit(gap).alias("gap"),
        F.explode("sellers").alias("seller"),
        "bids",
    )
    return exploded.withColumn("bid", F.explode("bids")).select(
        "auction", "window", "gap", "seller", "bid.bidder", "bid.price"
    )


NATIVE: dict[str, Callable[[Frames], DataFrame]] = {
    one.__name__: one for one in (q1, q2, q3, q4, q5, q6, q7, q8, nbq5, nbq8, nbqx)
}
