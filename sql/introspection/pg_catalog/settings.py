"""Rows of pg_settings: the session's variables, without its transaction's modes."""

from __future__ import annotations

from collections.abc import Sequence

from ...results.results import Row
from ...runtime.introspection_context import IntrospectionContext
from ...variables.variables import REGISTRY, SessionVariables, Variable


async def setting_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [_row(variable, context.variables) for variable in REGISTRY.values()]


def _row(variable: Variable[object], variables: SessionVariables) -> Row:
    boot = variable.show(variable.default)
    context = "internal" if variable.parse is None else "user"
    kind = "bool" if isinstance(variable.default, bool) else "string"
    return (
        variable.title or variable.name, variables.show(variable), None, "Session",
        variable.description, None, context, kind, variables.source(variable), None, None, None,
        boot, variables.reset_text(variable), None, None, False,
    )  # fmt: skip
