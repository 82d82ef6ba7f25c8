"""Documents: what PostgreSQL's JSONB does, to the digit.

A document is its normal text (`catalog.values.json_text`), wherever it is: in a row, in Arrow, in
DuckDB. DuckDB's own functions on JSON read numbers as doubles and write documents in a form of
their own, so they are asked only for what cannot lose anything, and everything else is done on the
text:

    `operators`     what stands at `->` and `#>`, `||`, `-`, `@>`, `?`
    `order`         the order of documents
    `functions`     all of that as functions of DuckDB, over columns, and macros of to_jsonb
    `calls`         calls of these functions in a query's tree

What goes in is normal, and so is what comes out: two texts are the same exactly if the documents
are, but for zeros at the ends of fractions. Nothing here knows of tables or sessions.
"""
