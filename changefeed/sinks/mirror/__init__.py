"""The common part of sinks that mirror tables into a database.

A *mirror* holds a table's rows by primary key, each with the timestamp of its version, and the
feed's progress in the same database. `gathered` is what waits for a table's next flush, `conform`
brings late rows under the schema that the mirror has, `progress_encoding` writes progress as bytes.
"""
