"""Lowering: PostgreSQL's expressions as DuckDB's.

The two agree on most of SQL, and where they do not, DuckDB would answer otherwise without a word:
`7.0 / 2`, `round(2.5::FLOAT8)`, `substring('hello', -2, 5)`. Here the tree of a query is rewritten
before DuckDB sees it, behind the checks of its types (`sql.analyze.types`):

    `transpile`      the whole of it: a query to an `AnalyticSelect`
    `meaning`        the one rewriter, inner nodes first, and its rules by the classes of nodes
    `casts`          texts read as literals are, and values that DuckDB would convert otherwise
    `arrays`         functions and operators on arrays, patterns of a whole array
    `numbers`        division, averages, rounding, casts of numbers
    `texts`          functions of text, LIKE and regular expressions, COLLATE
    `times`          extract, date_trunc, to_char, intervals, which time each function of time tells
    `aggregates`     ordered sets, FILTER, lists of distinct values
    `implied_columns`  those that depend on a grouped primary key, and of documents' elements
    `documents`      JSONB
    `row_expressions`  computed columns, checks and defaults, by Python or by DuckDB

What is not known to differ passes as it is. The promise is held by the differential test against
PostgreSQL (`tests/system/differential`); what still differs is in docs/sql-differences.md.
"""
