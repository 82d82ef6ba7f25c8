"""Lowering: PostgreSQL's expressions as DuckDB's.

The two agree on most of SQL, and where they do not, DuckDB would answer otherwise without a word:
`7.0 / 2`, `round(2.5::FLOAT8)`, `substring('hello', -2, 5)`. Here the tree of a query is rewritten
before DuckDB sees it, behind the checks of its types (`sql.analyze.types`):

    `transpile`      the whole of it: a query to an `AnalyticSelect`
    `meaning`        walks the tree, and asks the others for each node
    `casts`          texts read as literals are, and values that DuckDB would convert otherwise
    `arrays`         functions on arrays, patterns of a whole array
    `spans`          arithmetic and casts of intervals
    `numbers`        division, averages, rounding, casts of numbers
    `texts`          functions and patterns of text, COLLATE
    `patterns`       regular expressions
    `precisions`     moments rounded to some digits of a second
    `times`          extract, date_trunc, to_char, which time each function of time tells
    `moment_patterns` patterns of to_char
    `wide_operators` operators on arrays and times
    `aggregation`    aggregates, windows, frames, grouped keys
    `documents`      JSONB

What is not known to differ passes as it is. The promise is held by the differential test against
PostgreSQL (`tests/system/differential`); what still differs is in docs/sql-differences.md.
"""
