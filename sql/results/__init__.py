"""Results and errors of statements, as sessions hand them to doors.

What lives here: rows in batches, `SQLError` with its SQLSTATE, and arithmetic on values. It must
never know what made a result.
"""
