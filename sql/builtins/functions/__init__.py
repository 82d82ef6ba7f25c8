"""PostgreSQL's functions that DuckDB lacks, as Python computes them for it.

    `installed`      their names in DuckDB, and how columns become values and values columns
    `byte_strings`   bits and bytes of BYTEA, and its escape format
    `identifiers`    parse_ident
    `unicode_forms`  normalize, unistr
    `hashes`         hashtext
    `degrees`        sine and its kin of degrees, exact where PostgreSQL is
    `number_pattern`, `number_text`, `number_reading`     to_char and to_number
    `moment_pattern`, `moment_text`, `moment_reading`     to_char, to_date and to_timestamp
    `format_text`    format() by a pattern that is no constant
    `decimal_series` generate_series of decimals
    `clock_texts`    timeofday
    `pairs`          corr, covar_pop, regr_slope and their kin

Each function is of plain values, which may not be NULL: of NULL they all make NULL, which
`installed` sees to. A row costs a microsecond and what its function takes: some ten for a pattern
of a number or a moment. Errors are SQLErrors, and pass through DuckDB as marked texts. Nothing here
knows of statements or tables.
"""
