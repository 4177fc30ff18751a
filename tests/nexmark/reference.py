"""The queries once more, in SQL, written from their definitions.

This is what DuckDB answers over all events when all time has passed. Columns come in the order of the
queries' outputs. Query 4 tells a running value whenever an epoch has changed it; here it is the last one of
each category. Query 6 tells one with every auction that closes, and so does this.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

WON = """
    SELECT a.id, a.seller, a.category, a.expires, max(b.price) AS price
    FROM auction a JOIN bid b ON b.auction = a.id
    WHERE b.dateTime >= a.dateTime AND b.dateTime < a.expires AND b.price >= a.reserve
    GROUP BY ALL
"""


def _counts(length: int, slide: int) -> str:
    """Bids by auction in sliding windows (seconds)."""
    pane = f"epoch_us(dateTime) // {slide * 1_000_000}"
    return f"""
        SELECT auction, make_timestamptz(w * {slide * 1_000_000} - {length * 1_000_000}) AS window_start,
            make_timestamptz(w * {slide * 1_000_000}) AS window_end, count(*) AS n
        FROM (SELECT auction, unnest(range({pane} + 1, {pane} + 1 + {length // slide})) AS w FROM bid)
        GROUP BY ALL
    """


def _window(table: str, hours: int) -> str:
    width = hours * 3_600_000_000
    return f"epoch_us({table}.dateTime) // {width} * {width}"


def _sessions(minutes: int) -> str:
    """Auctions and bids of one auction are one session while less than the gap is between two of them."""
    gap = minutes * 60_000_000
    return f"""
        SELECT a.auction, make_timestamptz(a.start) AS "window", '{minutes} minutes' AS gap,
            a.seller, b.bidder, b.price
        FROM ({_of_session("auction_event", gap)}) a
        JOIN ({_of_session("bid_event", gap)}) b ON a.auction = b.auction AND a.session = b.session
    """


def _of_session(kind: str, gap: int) -> str:
    return f"""
        SELECT * FROM (
            SELECT *, min(t) OVER (PARTITION BY auction, session) AS start FROM (
                SELECT *, sum(new) OVER (PARTITION BY auction ORDER BY t, kind, n) AS session FROM (
                    SELECT *, CASE
                        WHEN t - lag(t) OVER (PARTITION BY auction ORDER BY t, kind, n) < {gap} THEN 0
                        ELSE 1
                    END AS new
                    FROM (
                        SELECT id AS auction, epoch_us(dateTime) AS t, 'auction_event' AS kind,
                            0 AS n, seller, NULL AS bidder, NULL AS price
                        FROM auction
                        UNION ALL
                        SELECT auction, epoch_us(dateTime), 'bid_event',
                            row_number() OVER (), NULL, bidder, price
                        FROM bid
                    )
                )
            )
        ) WHERE kind = '{kind}'
    """


SQL = {
    "q1": "SELECT auction, bidder, price * 0.908::DOUBLE, dateTime FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT p.id, p.name, p.city, p.state, a.id
        FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    "q4": f"SELECT category, avg(price) FROM ({WON}) GROUP BY category",
    "q5": f"""
        SELECT * FROM ({_counts(60, 1)}) QUALIFY rank() OVER (PARTITION BY window_end ORDER BY n DESC) = 1
    """,
    "q6": f"""
        SELECT seller, avg(price) OVER (PARTITION BY seller ORDER BY expires, id ROWS 9 PRECEDING)
        FROM ({WON})
    """,
    "q7": """
        SELECT make_timestamptz(w) AS "window", auction, bidder, price
        FROM (SELECT *, epoch_us(dateTime) // 60000000 * 60000000 AS w FROM bid)
        QUALIFY rank() OVER (PARTITION BY w ORDER BY price DESC) = 1
    """,
    "q8": f"""
        SELECT p.id, make_timestamptz({_window("p", 12)}), p.name, a.reserve
        FROM person p JOIN auction a ON a.seller = p.id AND {_window("p", 12)} = {_window("a", 12)}
    """,
    "nbq5": _counts(60, 10),
    "nbq8": f"""
        SELECT p.id, make_timestamptz({_window("p", 12)}), p.* EXCLUDE (id), a.* EXCLUDE (seller)
        FROM person p JOIN auction a ON a.seller = p.id AND {_window("p", 12)} = {_window("a", 12)}
    """,
    "nbqx": f"""
        SELECT b.auction, make_timestamptz({_window("b", 4)}), 'fixed 4 hours', a.seller, b.bidder, b.price
        FROM auction a JOIN bid b ON a.id = b.auction AND {_window("a", 4)} = {_window("b", 4)}
        UNION ALL {_sessions(30)} UNION ALL {_sessions(60)}
        UNION ALL {_sessions(90)} UNION ALL {_sessions(120)}
    """,
}
LAST_OF_KEY = {"q4"}
"""Queries that tell running values as epochs have them.

The last of each key, the first column, is the answer.
"""


def answer(query: str, person: pa.Table, auction: pa.Table, bid: pa.Table) -> list[tuple]:
    """What DuckDB answers, sorted."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, table in {"person": person, "auction": auction, "bid": bid}.items():
            database.register(name, table)
        return comparable(database.execute(SQL[query]).fetchall())


def comparable(rows: list[tuple]) -> list[tuple]:
    """Rows in an order of their own.

    Floats are to six decimals, because sums may be added up in another order.
    """
    return sorted(tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows)
