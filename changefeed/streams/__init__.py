"""Sinkless feeds: their rows go to the client that asked for them, and end with it."""
