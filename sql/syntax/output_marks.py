"""Marks on a tree that keep the words it was written in, for the names of a result's columns."""

from __future__ import annotations

CALLED = "called"
"""Where what stands for a function keeps the name that its column has; empty for none."""
