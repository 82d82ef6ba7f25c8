"""Random schema changes, as text and as what the model makes of them."""

from __future__ import annotations

from itertools import count
from random import Random

from tests.simulation.schema_steps import (
    Add,
    Become,
    Drop,
    Fill,
    ModelColumn,
    Rekey,
    Schema,
    Step,
    Truncate,
)


class Statements:
    """Gives statements about a table, of what it is thought to be. Names are given once."""

    def __init__(self, table: str, random: Random) -> None:
        self._table = table
        self._random = random
        self._numbers = count(1)
        self._indexes: list[str] = []

    def next(self, schema: Schema) -> tuple[str, tuple[Step, ...]]:
        table, random = self._table, self._random
        columns = schema.columns
        draw = random.randrange(24)
        if draw < 6 or not columns:
            clause, step = self._addition()
            return f"ALTER TABLE {table} {clause}", (step,)
        column = random.choice(columns)
        match draw:
            case 6 | 7:
                drop = f"ALTER TABLE {table} DROP COLUMN {column.name} CASCADE"
                return drop, (Drop(column.number),)
            case 8:
                clause, step = self._addition()
                drop = f"ALTER TABLE {table} {clause}, DROP COLUMN {column.name} CASCADE"
                return drop, (step, Drop(column.number))
            case 9 | 10:
                name = f"c{next(self._numbers)}"
                rename = f"ALTER TABLE {table} RENAME COLUMN {column.name} TO {name}"
                return rename, (Become(column.number, name=name),)
            case 11 if column.type == "INT8" and column.fill is not Fill.COMPUTED:
                retype = f"ALTER TABLE {table} ALTER COLUMN {column.name} TYPE STRING"
                return retype, (Become(column.number, type="STRING"),)
            case 12:
                key = "j" if schema.key == "k" else "k"
                return f"ALTER TABLE {table} ALTER PRIMARY KEY USING COLUMNS ({key})", (Rekey(key),)
            case 13:
                return f"TRUNCATE {table}", (Truncate(),)
            case 14:
                return f"ALTER TABLE {table} ALTER COLUMN {column.name} SET NOT NULL", ()
            case 15 | 16:
                lock = random.choice(["true", "false"])
                return f"ALTER TABLE {table} SET (changefeed_optimized = {lock})", ()
            case 17 if self._indexes:
                index = self._indexes.pop(random.randrange(len(self._indexes)))
                return f"DROP INDEX {table}@{index} CASCADE", ()
            case 20 | 21 | 22 | 23:
                return self._failing(schema, column)
        name = f"i{next(self._numbers)}"
        self._indexes.append(name)
        unique = random.choice(["", "UNIQUE "])
        return f"CREATE {unique}INDEX {name} ON {table} ({column.name})", ()

    def _failing(self, schema: Schema, column: ModelColumn) -> tuple[str, tuple[Step, ...]]:
        """A change that is undone, unless the table has too few rows for it to fail on.

        A third of the rows has a `w` that no check here admits.
        """
        number = next(self._numbers)
        name, check = f"c{number}", "ADD CHECK (w % 3 <> 0)"
        constant = Add(ModelColumn(number, name, "INT8", Fill.CONSTANT, number))
        clause, step = self._addition()
        steps: tuple[Step, ...]
        match self._random.randrange(6):
            case 0:
                change, steps = f"ADD COLUMN {name} INT8 UNIQUE DEFAULT {number}", (constant,)
            case 1:
                change = f"ADD COLUMN {name} INT8 DEFAULT {number}, ADD UNIQUE ({name}), {clause}"
                steps = constant, step
            case 2:
                change, steps = f"{clause}, ADD UNIQUE ({column.name}), {check}", (step,)
            case 3:
                drop = f"DROP COLUMN {column.name} CASCADE"
                change, steps = f"{clause}, {drop}, {check}", (step, Drop(column.number))
            case 4:
                key = "j" if schema.key == "k" else "k"
                change = f"ALTER PRIMARY KEY USING COLUMNS ({key}), {check}"
                steps = (Rekey(key),)
            case _:
                change = f"{clause}, ADD FOREIGN KEY (w) REFERENCES {self._table} ({schema.key})"
                steps = (step,)
        return f"ALTER TABLE {self._table} {change}", steps

    def _addition(self) -> tuple[str, Add]:
        number = next(self._numbers)
        name = f"c{number}"
        match self._random.randrange(6):
            case 0 | 1:
                return f"ADD COLUMN {name} INT8", Add(ModelColumn(number, name, "INT8"))
            case 2 | 3:
                column = ModelColumn(number, name, "INT8", Fill.CONSTANT, number)
                return f"ADD COLUMN {name} INT8 DEFAULT {number}", Add(column)
            case 4:
                column = ModelColumn(number, name, "UUID", Fill.DRAWN)
                return f"ADD COLUMN {name} UUID DEFAULT gen_random_uuid()", Add(column)
        column = ModelColumn(number, name, "INT8", Fill.COMPUTED)
        return f"ADD COLUMN {name} INT8 AS (w * 2) STORED", Add(column)
