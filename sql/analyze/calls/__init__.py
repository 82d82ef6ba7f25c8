"""Calls that are more than functions of their arguments.

What lives here: functions of the session and of its settings, what a client is told of itself,
sequences, and the ids of PostgreSQL's objects.
"""
