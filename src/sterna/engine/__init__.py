"""One epoch, in the order in which it happens: freeze, route, extract, exchange, apply, receipts, commit.

``coordinator`` decides (freeze) and concludes (commit); ``route``, ``extract`` and ``apply`` are the tasks,
plain functions over iterators of messages; ``spark`` builds the one Spark job that runs them. Only ``spark``
and ``placement`` know Spark.
"""
