"""The base of every error that Tailrace raises for its users."""

from __future__ import annotations


class Error(Exception):
    """What a program catches that does not care which part of Tailrace said no."""
