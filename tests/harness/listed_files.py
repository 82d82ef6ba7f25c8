"""Files of a bucket that a sink writes meanwhile: those under way come and go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError


@contextmanager
def gone_since_it_was_listed() -> Iterator[None]:
    """Passes over a file that is read and not there any more (404)."""
    try:
        yield
    except HTTPError as error:
        if error.code != 404:
            raise
