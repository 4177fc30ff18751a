"""The section about other systems says what their figures say."""

from __future__ import annotations

from bench import steady_samples as steady
from sterna.bench.evaluation import peers
from sterna.bench.evaluation.entries import Entry
from sterna.bench.peers import flink_count
from sterna.bench.peers import queries as compared


def test_peers_that_are_better_are_named(section):
    found = section(peers.section, **steady.peers())
    assert "- 1,024 MB: the median latency before: flink 200, Sterna 300" in found.text
    assert "| Q3 | 500,000 | 2,200,000 | 2,200,000 | 900,000 | 100,000 | 9.00× |\n| Q3 | 123" in found.text
    assert "| Q5 | 200,000 | 30,000 | – | 500,000 | 250,000 | 2.00× |" in found.text
    assert "1,500,000 a second and core packed" in found.text
    assert "- count by key, 65,536 keys: spark takes 5,000,000 records a second, Sterna 4" in found.text
    assert found.here.startswith("a peer is better in 2 figures")


def test_the_queries_are_judged_by_the_goals_of_the_file(section):
    whole = steady.peers()
    found = section(peers.section, **whole)
    assert "Q3 9.00×, kept and Q8 4.00×, **missed**." in found.text
    assert found.here.endswith(
        "1 of 2 queries with many keys at least 5 times as fast as Spark's own version"
    )
    assert "records a second over many keys: 4.00×, kept." in found.text
    assert "longest wait with the largest state: 0.30×, **missed**." in found.text
    assert "| count over 65,536 keys | records/s | Sterna's ratio to it |" in found.text
    assert (
        "Flink's source alone, with what makes records of its lines, gives 3,000,000 a second." in found.text
    )
    assert "Sterna has 256 bins for this, and not the usual 4,096" in found.text
    unjudged = section(peers.section, **{name: {**one, "goals": {}} for name, one in whole.items()})
    assert "The goal" not in unjudged.text
    assert unjudged.here == "a peer is better in 2 figures"


def test_the_page_and_the_benchmark_have_the_same_goal():
    assert (peers.MANY_KEYS, peers.LEAST_RATIO) == (compared.MANY_KEYS, compared.LEAST_RATIO)
    assert (peers.SAMPLE, peers.PROBE) == (flink_count.SAMPLE, flink_count.PROBE)


def test_how_much_of_few_keys_is_the_source_is_told():
    few = {"keys": 65_536, "flink_records_per_second": 6, "spark_records_per_second": 50}
    few |= {"sterna_records_per_second": 10, "ratio_to_flink": 1.67}
    told = {"flink_source_records_per_second": 8, "few_keys": few}
    said = peers.sources(Entry("x.json", told))
    assert "75 % of the time that Flink takes for a record" in said
    assert "takes at most 20 % of Sterna's" in said
    assert "Sterna's ratio to Flink (1.67×) compares sources more than counting" in said
    few["flink_records_per_second"] = 2
    assert "compares sources" not in peers.sources(Entry("x.json", told))
    assert peers.sources(Entry("x.json", {"few_keys": few})) == ""


def test_what_part_of_flinks_keys_is_looked_at_is_told(section):
    whole = steady.peers()
    text = section(peers.section, **whole).text
    assert "(one key in 256 seen) |" in text
    assert "one key in 256; and one in 8 of these gets another record" in text


def test_peers_may_all_be_worse_and_some_parts_missing(section):
    found = section(
        peers.section, **{"peers-rescale": {"peer_better": [], "failures": ["flink: no"], "goals": {}}}
    )
    assert "No peer is better" in found.text
    assert "- flink: no" in found.text
    assert "| NEXMark |" not in found.text
    assert "Not measured yet: `sterna bench peers --part queries --json" in found.text


def test_queries_of_another_run_are_told_apart(section):
    whole = steady.peers()
    whole["peers-queries"]["queries"][1]["machine"] = {"day": "2026-11-18", "commit": "abc"}
    found = section(peers.section, **whole)
    assert "Q5: measured in a run apart from the others (2026-11-18, abc)." in found.text
