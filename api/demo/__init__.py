"""The demo: a day of real flights through a changefeed into a DuckDB mirror.

`flights` reads the data set, `schedule` turns a day of it into single-row transactions, `replay`
commits them with the table unlocked and locked in turns, `compare` holds the source, the mirror and
the CSV against each other, and `report` prints the one table at the end.
"""
