"""The functions and operators of SQL that take a path: each is of one document.

Where they are silent, what the path fails at ends it: the items that were found until then remain,
and a truth is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .....catalog.values.errors import SQLError
from .....catalog.values.json_text import read_json, write_json
from .evaluation import Evaluation, Item, PathFailed
from .reader import path_of

_NO_VARIABLES = "{}"


def exists(
    document: str, path: str, given: str = _NO_VARIABLES, silent: bool = False
) -> bool | None:
    try:
        return _asked(document, path, given).exists()
    except PathFailed:
        if not silent:
            raise
        return None


def matches(
    document: str, path: str, given: str = _NO_VARIABLES, silent: bool = False
) -> bool | None:
    try:
        found = list(_asked(document, path, given).items())
        if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
            return found[0]
        raise PathFailed("22038", "single boolean result is expected")
    except PathFailed:
        if not silent:
            raise
        return None


def query(document: str, path: str, given: str = _NO_VARIABLES, silent: bool = False) -> list[str]:
    return [write_json(item) for item in _found(document, path, given, silent=silent)]


def array(document: str, path: str, given: str = _NO_VARIABLES, silent: bool = False) -> str:
    return write_json(list(_found(document, path, given, silent=silent)))


def first(document: str, path: str, given: str = _NO_VARIABLES, silent: bool = False) -> str | None:
    found = list(_found(document, path, given, silent=silent))
    return write_json(found[0]) if found else None


def exists_silently(document: str, path: str) -> bool | None:
    """`document @? path`."""
    return exists(document, path, silent=True)


def matches_silently(document: str, path: str) -> bool | None:
    """`document @@ path`."""
    return matches(document, path, silent=True)


def _found(document: str, path: str, given: str, *, silent: bool) -> Iterator[Item]:
    try:
        yield from _asked(document, path, given).items()
    except PathFailed:
        if not silent:
            raise


def _asked(document: str, path: str, given: str) -> Evaluation:
    variables = read_json(given)
    if not isinstance(variables, Mapping):
        raise SQLError(
            "22023",
            '"vars" argument is not an object',
            detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )
    return Evaluation(path_of(path), read_json(document), variables)
