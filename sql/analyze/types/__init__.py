"""Types of expressions: of columns, parameters, literals and calls.

It promises PostgreSQL's type for what it types, and says where it does not know one; what
PostgreSQL refuses for its types (casts, comparisons, rows as values, frames) is an SQLError here
(`resolution`), before anything is rewritten.
"""
