"""current_setting and set_config: a session's variables as parts of expressions.

    current_setting('lock_timeout')               as SHOW: 42704 for an unknown name,
    current_setting('nobody.knows', true)         or NULL where that is allowed
    set_config('lock_timeout', '5s', false)       as SET, and the value that it has then
    set_config('lock_timeout', '5s', true)        as SET LOCAL

Each is evaluated once for a statement, from left to right, so it takes no columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...variables.variables import REGISTRY, SessionVariables, find

SettingFunction = Callable[[SessionVariables, Sequence[object]], str | None]
"""Takes the evaluated arguments. Raises SQLError as SHOW and SET do."""


def setting_call(tree: exp.Expr) -> tuple[SettingFunction, list[exp.Expr]] | None:
    """The function that a node calls, if it is one of these, and its arguments. It may be
    qualified by `pg_catalog`. Raises SQLError 42883 for a wrong number of them."""
    match tree:
        case exp.Dot(this=exp.Identifier() as schema, expression=exp.Anonymous() as function):
            return setting_call(function) if schema.name.lower() == "pg_catalog" else None
        case exp.Anonymous():
            found = _FUNCTIONS.get(tree.name.lower())
            if found is None:
                return None
            function_, counts = found
            if len(tree.expressions) not in counts:
                raise SQLError(
                    "42883",
                    f"function {tree.name.lower()} takes another number of arguments",
                    hint="Write current_setting(name [, missing_ok]) or "
                    "set_config(name, value, is_local).",
                )
            return function_, tree.expressions
    return None


def _current_setting(variables: SessionVariables, arguments: Sequence[object]) -> str | None:
    name, *missing_ok = arguments
    if name is None:
        return None
    known = str(name).lower()
    if missing_ok == [True] and known not in REGISTRY:
        return None
    return variables.show(find(known))


def _set_config(variables: SessionVariables, arguments: Sequence[object]) -> str | None:
    name, value, local = arguments
    if name is None:
        raise SQLError("22004", "set_config: the name of a parameter is NULL")
    known = str(name).lower()
    if value is None:
        variables.reset(known)
    else:
        variables.set(known, str(value), local=bool(local))
    return variables.show(find(known))


_FUNCTIONS: dict[str, tuple[SettingFunction, tuple[int, ...]]] = {
    "current_setting": (_current_setting, (1, 2)),
    "set_config": (_set_config, (3,)),
}
