"""What PostgreSQL means by an expression, said in DuckDB's words.

The two agree on most of SQL, and where they do not, DuckDB would answer otherwise without a word:
`7.0 / 2`, `round(2.5::FLOAT8)`, `substring('hello', -2, 5)`. Here the tree of a query is rewritten
before DuckDB sees it:

    `derived_types`  types that follow from others: of alternatives, of quotients
    `types`          the type of each expression, as far as it is plain to see
    `node_types`     those of nodes that have one by their class
    `number_scales`  the digits of decimals that functions return
    `stars`          what a star stands for, and of which types
    `signatures`     which function or operator is meant by operands of these types
    `functions`      the functions that are known by their signatures
    `operators`      the operators that are
    `resolution`     errors of types, and the types of literals, before anything is rewritten
    `meaning`        walks the tree, and asks the others for each node
    `casts`          which casts there are, and texts read as literals are
    `arrays`         functions on arrays, patterns of a whole array
    `singles`        FLOAT4 beside other numbers
    `blanks`         CHAR(n) beside other texts
    `spans`          arithmetic and casts of intervals
    `aggregates`     what is distinct in order, deviations of floats
    `numbers`        division, averages, rounding, casts of numbers
    `texts`          functions and patterns of text
    `precisions`     moments rounded to some digits of a second
    `times`          extract, date_trunc, to_char
    `comparisons`    rows compared with rows
    `clocks`         which time each function of time tells
    `series`         generate_series of decimals
    `byte_calls`     functions of text that BYTEA has too
    `lists`          aggregates that are functions of a list
    `hypothetical`   rank() of a row that is not there
    `macros`         functions that DuckDB is given by their definition
    `computed`       functions that Python computes for it (`sql.functions`)
    `output_names`   what Postgres calls a column that has no alias

What is not known to differ passes as it is. The promise is held by the differential test against
PostgreSQL (`tests/system/differential`); what still differs is in docs/sql-differences.md.
"""
