"""Readers of mirror files: the queries of clients, and snapshots to be compared with the source."""
