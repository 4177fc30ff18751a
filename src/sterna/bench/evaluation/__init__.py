"""The evaluation page: the figures and tables of the Megaphone paper, measured here, beside what it says.

Every one that applies is there.

``page.made`` is a pure function from the folder of JSON files that benchmarks print, and the source of the
queries, whose lines are counted, to the text of ``docs/evaluation.md`` and its pictures. Nothing in the page
is typed by hand: amounts come from the files, and sentences that judge them are chosen by them. ``entries``
reads files, ``paper`` holds what the paper says, ``plots`` and ``pictures`` draw, and there is one module for
each section.
"""
