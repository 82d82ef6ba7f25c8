"""What a tree keeps of the words that it was written in, for the names of a result's columns."""

from __future__ import annotations

CALLED = "called"
"""Where what stands for a function keeps the function's name, which its column has."""
