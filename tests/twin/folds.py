"""Folds for the dataflows of the properties.

Each treats a key alike whatever other keys are at its worker.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TIME = pa.timestamp("us", "UTC")
SECOND = 1_000_000


def running(key, record, state):
    """State with nested types; every fifth value drops it; outputs show the order of the records."""
    n = 0 if state is None else state["n"]
    seen = [] if state is None else state["seen"]
    v = record["v"]
    if v is not None and v % 5 == 0:
        return None, [(key, n, "dropped", record["ts"])]
    seen = [*seen[-2:], {"v": v, "s": record["s"]}]
    text = ",".join(str(one["v"]) for one in seen)
    return {"n": n + 1, "seen": seen}, [(key, n + 1, text, record["ts"])]


def chained(key, record, state):
    """The state is a text of all that came, in order."""
    state = (state or "") + f"{record['n']};"
    return state[-40:], [(key, record["n"], state[-40:], record["ts"])]


def pickling(key, record, state):
    state = (state or frozenset()) | {record["v"]}
    return (state if len(state) < 4 else None), [len(state)]


def windows(rows, tables, later):
    """A value table, a rows table that expires, deletions, and a notification for each row."""
    out = []
    if later.due.num_rows:
        old = tables["total"].get(later.due)
        recent = tables["recent"].get(later.due)
        counts = np.bincount(recent["_position"].to_numpy(), minlength=later.due.num_rows)
        note = [f"due {t} {n}" for t, n in zip(old["total"].to_pylist(), counts.tolist(), strict=True)]
        out.append(
            pa.table({"k": later.due["k"], "n": later.due["v"], "text": texts(note), "ts": later.due["at"]})
        )
    if rows.num_rows:
        tables["recent"].append(rows)
        later.notify_at(pc.add(rows["ts"].cast(pa.int64()), 3 * SECOND), rows)
        table, keys = tables["total"], _distinct(rows)
        had = table.get(keys)["total"].fill_null(0)
        table.put(keys.append_column("total", pc.add(had, keys["added"])))
        gone = keys.filter(pc.equal(pc.bit_wise_and(keys["added"], 7), 3))
        table.delete(gone)
        tables["recent"].delete(gone)
        recent = tables["recent"].get(keys)
        counts = np.bincount(recent["_position"].to_numpy(), minlength=keys.num_rows)
        text = [f"rows {t} {n}" for t, n in zip(had.to_pylist(), counts.tolist(), strict=True)]
        out.append(pa.table({"k": keys["k"], "n": keys["added"], "text": texts(text), "ts": keys["ts"]}))
    return pa.concat_tables(out)


def texts(values):
    return pa.array(values, pa.string())


def _distinct(rows):
    """One row for each key: how much its values add up to, and its last time."""
    added: dict = {}
    for k, v, ts in zip(rows["k"].to_pylist(), rows["v"].to_pylist(), rows["ts"].to_pylist(), strict=True):
        name = "nan" if k != k else k  # noqa: PLR0124 - that is how to find NaN
        total = added.get(name, (k, 0, ts))[1]
        added[name] = (k, total + (v or 0), ts)
    columns = [list(column) for column in zip(*added.values(), strict=True)]
    types = [rows.schema.field("k").type, pa.int64(), TIME]
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["k", "added", "ts"])


def joining(left, right, tables, later):
    """A symmetric join: each side looks at what the other has kept, then is kept itself."""
    out = []
    for mine, other, name in ((left, "right", "left"), (right, "left", "right")):
        found = tables[other].get(mine)
        at = found["_position"]
        pairs = [
            f"{name} {a} {b}"
            for a, b in zip(mine["v"].take(at).to_pylist(), found["v"].to_pylist(), strict=True)
        ]
        out.append(
            pa.table(
                {"k": mine["k"].take(at), "n": found["v"], "text": texts(pairs), "ts": mine["ts"].take(at)}
            )
        )
        tables[name].append(mine)
    if left.num_rows:
        later.notify_at(pc.add(left["ts"].cast(pa.int64()), SECOND), left)
    due = later.due
    text = [f"due {at}" for at in due["at"].to_pylist()]
    out.append(
        pa.table(
            {"k": due["k"], "n": pa.nulls(due.num_rows, pa.int64()), "text": texts(text), "ts": due["at"]}
        )
    )
    return pa.concat_tables(out)


def meeting(left, right, tables, later):
    """Where two ways from one operator meet again: counts what came along each."""
    table, sides = tables["met"], [(left, "l"), (right, "r")]
    out = []
    for rows, name in sides:
        if not rows.num_rows:
            continue
        had = table.get(rows.select(["k"]))
        text = [
            f"{name} {n} {t}" for n, t in zip(rows["n"].to_pylist(), had["trace"].to_pylist(), strict=True)
        ]
        new = texts(
            [
                (t or "")[-20:] + f"{name}{n}"
                for n, t in zip(rows["n"].to_pylist(), had["trace"].to_pylist(), strict=True)
            ]
        )
        table.put(pa.table({"k": rows["k"], "trace": new}))
        out.append(pa.table({"k": rows["k"], "n": rows["n"], "text": texts(text), "ts": rows["ts"]}))
    return pa.concat_tables(out)


def as_v(rows, tables, later):
    return rows.rename_columns(["k", "v", "text", "ts"]) if rows.num_rows else None


def passing(key, record, state):
    return (state or 0) + 1, [(key, record["g"], (state or 0) + 1, record["x"])]


def both(left, right, tables, later):
    """Every row, with the count of its group."""
    counts = dict(zip(left["g"].to_pylist(), left["n"].to_pylist(), strict=True))
    return pa.table(
        {
            "k": right["k"],
            "g": right["g"],
            "n": pa.array([counts[g] for g in right["g"].to_pylist()], pa.int64()),
        }
    )


def traced(left, right, tables, later):
    none = pa.nulls(left.num_rows, TIME)
    rows = right.select(["k", "v", "ts"]).rename_columns(["k", "n", "ts"])
    return meeting(left.select(["k", "n"]).append_column("ts", none), rows, tables, later)
