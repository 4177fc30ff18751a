from __future__ import annotations

import io

from rich.console import Console

from sterna import demo


def test_the_demo_moves_bins_and_counts_right(spark, monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS_BEFORE", 2)
    monkeypatch.setattr(demo, "LIMIT", 4 * demo.LINES_AN_EPOCH)
    out = io.StringIO()
    assert demo.run(Console(file=out, width=120))
    text = out.getvalue()
    assert "Before the move" in text
    assert "After the move" in text
    assert "Right" in text
    assert spark.streams.active == []


def test_the_demo_notices_a_wrong_count(spark, monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS_BEFORE", 1)
    monkeypatch.setattr(demo, "LIMIT", 2 * demo.LINES_AN_EPOCH)
    truth = demo.expected()
    monkeypatch.setattr(
        demo, "expected", lambda: {**truth, "the": truth["the"] - 1, "tern": truth["tern"] + 1}
    )
    out = io.StringIO()
    assert not demo.run(Console(file=out, width=120))
    assert "WRONG" in out.getvalue()


def test_the_expected_counts_are_those_of_the_text():
    words = [word for number in range(demo.LIMIT) for word in demo.LINES[number % len(demo.LINES)].split()]
    assert sum(demo.expected().values()) == len(words)
    assert demo.expected()["tern"] == words.count("tern")
