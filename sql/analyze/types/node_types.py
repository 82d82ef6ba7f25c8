"""What nodes are by their class alone."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import TypeKind
from .derived_types import FLOAT8, INT8
from .expression_types import DOCUMENTS

_TRUTHS = (
    exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Exists,
    exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT,
    exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.ArrayContainsAll, exp.ArrayContainedBy,
    exp.ArrayOverlaps, exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsAllTopKeys, exp.JSONBPathExists, exp.MatchAgainst,
)  # fmt: skip
_COUNTS = (exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank)
_FLOATS = (exp.PercentileCont, exp.Corr, exp.Pi, exp.Rand, exp.CumeDist, exp.PercentRank)
_NAMES = (exp.CurrentUser, exp.CurrentSchema, exp.CurrentDatabase, exp.SessionUser)
_TYPES: tuple[tuple[tuple[type[exp.Expr], ...], ColumnType], ...] = (
    (_TRUTHS, ColumnType(TypeKind.BOOL)),
    (_COUNTS, INT8),
    (_FLOATS, FLOAT8),
    (_NAMES, ColumnType(TypeKind.STRING)),
    (DOCUMENTS, ColumnType(TypeKind.JSONB)),
    ((exp.JSONExtractScalar, exp.JSONBExtractScalar), ColumnType(TypeKind.STRING)),
)


def type_of_class(tree: exp.Expr) -> ColumnType | None:
    """The type that all nodes of its class have; None where the class does not say it."""
    return next((type for nodes, type in _TYPES if isinstance(tree, nodes)), None)
