"""Results and errors of statements, as sessions hand them to doors.

What lives here: rows in batches, `SQLError` with its SQLSTATE, arithmetic on values, and types as
clients know them. It must never know what made a result.
"""
