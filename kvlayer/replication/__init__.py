"""Spans whose versions come from another store: which store leads, the replica, and its tasks."""
