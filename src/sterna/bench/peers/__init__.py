"""Sterna beside its peers: Spark's own operators and Apache Flink.

All of them get the same events on the same machine, in the same run, taking turns. ``queries`` compares the
NEXMark queries with Spark's own versions of them, ``running`` a count by key with Spark's and Flink's: how
much input each keeps up with, and what a change from two workers to four costs. Each peer runs as its own
documentation recommends, and the module that starts it says how.
"""
