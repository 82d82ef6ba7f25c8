"""PostgreSQL's functions that DuckDB lacks, as Python computes them for it.

    `installed`      their names in DuckDB, and how columns become values and values columns
    `byte_strings`   functions of texts for BYTEA, and its escape format
    `hashes`         hashtext
    `moment_pattern`, `moment_text`     to_char of dates and timestamps
    `format_text`    format() by a pattern that is no constant
    `decimal_series` generate_series of decimals

Each function is of plain values, which may not be NULL: of NULL they all make NULL, which
`installed` sees to. A row costs a microsecond and what its function takes: some ten for a pattern
of a moment. Errors are SQLErrors, and pass through DuckDB as marked texts. Nothing here
knows of statements or tables.
"""
