"""Calls whose operands are named, in the order that everything behind the parser knows.

make_interval(days => n, secs := 1.5)       make_interval(0, 0, 0, n, 0, 0, 1.5)
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...builtins.macros import PREFIX
from ...syntax.tree_names import position_of
from ...syntax.walks import find_all

_OF_INTERVALS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def plain_intervals(tree: exp.Expr) -> exp.Expr:
    """The tree with every make_interval() in that form. Raises SQLError 42601 and 42883."""
    for call in list(find_all(tree, exp.MakeInterval)):
        operands = _in_order(call)
        named = exp.Anonymous(this=f"{PREFIX}make_interval", expressions=operands)
        if call is tree:
            return named
        call.replace(named)
    return tree


def _in_order(call: exp.MakeInterval) -> list[exp.Expr]:
    found: dict[str, exp.Expr] = {}
    given = [operand for operand in call.args.values() if isinstance(operand, exp.Expr)]
    for place, operand in enumerate(given):
        name, value = _OF_INTERVALS[place], operand
        if isinstance(operand, exp.Kwarg | exp.PropertyEQ):
            name, value = operand.this.name.lower(), operand.expression
        elif len(found) != place or any(one.parent is not call for one in found.values()):
            raise SQLError(
                "42601",
                "positional argument cannot follow named argument",
                position=position_of(operand),
            )
        if name in found or name not in _OF_INTERVALS:
            raise SQLError(
                "42883",
                f"function make_interval has no argument {name}, or has it twice",
                position=position_of(operand),
                hint=f"They are {', '.join(_OF_INTERVALS)}.",
            )
        found[name] = value
    return [found.get(name) or exp.Literal.number(0) for name in _OF_INTERVALS]
