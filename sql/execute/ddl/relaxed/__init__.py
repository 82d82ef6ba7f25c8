"""Relaxed logs: CREATE and DROP."""
