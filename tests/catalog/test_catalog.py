"""Databases and tables by name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.descriptors.names import TableName
from tailrace.catalog.descriptors.system_tables import SYSTEM_TABLES
from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.catalog.rights.key_errors import duplicate_key
from tailrace.catalog.store.catalog import Catalog, TableDefinition
from tailrace.catalog.store.show_create import show_create
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.txn import Transaction
from tests.harness.nodes import open_catalog
from tests.harness.simulation import Simulation


def _column(name: str, type_name: str, **options: object) -> Column:
    return Column(id=1, name=name, type=ColumnType.from_sql(type_name), **options)  # type: ignore[arg-type]


def _name(*parts: str) -> TableName:
    return TableName.resolve(parts, current_database="defaultdb")


FLIGHTS = TableDefinition(
    name=_name("flights"),
    columns=(
        _column("carrier", "text"),
        _column("time_hour", "timestamptz"),
        _column("delay", "decimal", default="1.5", has_default=True),
    ),
    primary_key=("time_hour", "carrier"),
)


def _like(name: str = "flights", **changes: object) -> TableDefinition:
    given = {"columns": FLIGHTS.columns, "primary_key": FLIGHTS.primary_key, **changes}
    return TableDefinition(name=_name(name), **given)  # type: ignore[arg-type]


@asynccontextmanager
async def _begin(sim: Simulation) -> AsyncIterator[tuple[Catalog, Transaction]]:
    async with open_catalog(sim) as fixture:
        transaction = fixture.store.begin()
        yield Catalog(fixture.descriptors), transaction
        await transaction.rollback()


async def _created(
    catalog: Catalog, transaction: Transaction, **changes: object
) -> TableDescriptor:
    table = await catalog.create_table(transaction, _like(**changes))  # type: ignore[arg-type]
    assert table is not None
    return table


def test_created_table_is_found(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            table = await _created(catalog, transaction)
            assert table.id >= 100
            assert [column.name for column in table.key_columns] == ["time_hour", "carrier"]
            assert [column.nullable for column in table.columns] == [False, False, True]
            for parts in (["flights"], ["public", "flights"], ["defaultdb", "public", "flights"]):
                assert (await catalog.resolve(transaction, _name(*parts))).id == table.id

    sim.run(scenario())


@pytest.mark.parametrize(
    ("parts", "sqlstate"),
    [
        (("nothing",), "42P01"),
        (("other", "flights"), "3F000"),
        (("other", "public", "flights"), "3D000"),
        (("a", "b", "c", "d"), "42601"),
    ],
)
def test_unknown_name_is_refused(sim: Simulation, parts: tuple[str, ...], sqlstate: str) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            with pytest.raises(SQLError) as caught:
                await catalog.resolve(transaction, _name(*parts))
            assert caught.value.sqlstate == sqlstate

    sim.run(scenario())


def test_second_table_of_a_name_is_refused(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            await _created(catalog, transaction)
            assert await catalog.create_table(transaction, FLIGHTS, if_not_exists=True) is None
            with pytest.raises(SQLError, match='relation "flights" already exists') as caught:
                await catalog.create_table(transaction, FLIGHTS)
            assert caught.value.sqlstate == "42P07"

    sim.run(scenario())


@pytest.mark.parametrize(
    ("changes", "sqlstate"),
    [
        ({"columns": (*FLIGHTS.columns, _column("delay", "int8"))}, "42701"),
        ({"primary_key": ()}, "42P16"),
        ({"primary_key": ("x",)}, "42703"),
        ({"primary_key": ("carrier", "carrier")}, "42701"),
        ({"columns": (_column("time_hour", "date", default="x", has_default=True),)}, "22007"),
        ({"parameters": {"fillfactor": 70}}, "22023"),
        ({"parameters": {"schema_locked": "maybe"}}, "22023"),
        ({"parameters": {"gc.ttlseconds": 0}}, "22023"),
        ({"parameters": {"gc.ttlseconds": "1.5"}}, "22023"),
        ({"parameters": {"schema_locked": True, "changefeed_optimized": False}}, "22023"),
    ],
)
def test_bad_definition_is_refused(
    sim: Simulation, changes: dict[str, object], sqlstate: str
) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            with pytest.raises(SQLError) as caught:
                await _created(catalog, transaction, **changes)
            assert caught.value.sqlstate == sqlstate

    sim.run(scenario())


def test_unknown_parameter_lists_the_known(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            with pytest.raises(SQLError, match='unrecognized storage parameter "lock"') as caught:
                await _created(catalog, transaction, parameters={"lock": True})
            assert "changefeed_optimized, schema_locked, gc.ttlseconds" in str(caught.value.hint)

    sim.run(scenario())


def test_dropped_table_is_gone(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            await _created(catalog, transaction)
            names = [_name("nothing"), _name("flights")]
            with pytest.raises(SQLError) as caught:
                await catalog.drop_tables(transaction, names)
            assert caught.value.sqlstate == "42P01"
            (dropped,) = await catalog.drop_tables(transaction, names, if_exists=True)
            assert dropped.dropped
            assert await catalog.find(transaction, _name("flights")) is None
            assert await catalog.list_tables(transaction, "defaultdb") == []

    sim.run(scenario())


def test_tables_and_databases_are_listed(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            for name in ("weather", "flights"):
                await _created(catalog, transaction, name=name)
            tables = await catalog.list_tables(transaction, "defaultdb")
            assert [table.name for table in tables] == ["flights", "weather"]
            assert await catalog.list_databases(transaction) == ["defaultdb", "system"]
            system = await catalog.list_tables(transaction, "system")
            assert [table.name for table in system] == sorted(table.name for table in SYSTEM_TABLES)

    sim.run(scenario())


def test_new_database_has_a_public_schema(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            assert await catalog.create_database(transaction, "air") is not None
            assert await catalog.create_database(transaction, "air", if_not_exists=True) is None
            with pytest.raises(SQLError, match='database "air" already exists') as caught:
                await catalog.create_database(transaction, "air")
            assert caught.value.sqlstate == "42P04"
            assert await catalog.list_tables(transaction, "air") == []

    sim.run(scenario())


def test_lock_is_set_and_reset(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as fixture:
            catalog = Catalog(fixture.descriptors)
            table = await fixture.create("flights")
            versions = []
            for given, locked in (
                ({"schema_locked": "on"}, True),
                ({"changefeed_optimized": True}, True),
                (["schema_locked"], False),
                ({"gc.ttlseconds": 60}, False),
                (["gc.ttlseconds"], False),
            ):
                transaction, name = fixture.store.begin(), _name("flights")
                if isinstance(given, dict):
                    table = await catalog.resolve(transaction, name)
                    changed = await catalog.set_parameters(transaction, table, given)
                else:
                    table = await catalog.resolve(transaction, name)
                    changed = await catalog.reset_parameters(transaction, table, given)
                await transaction.commit()
                assert changed.locked is locked
                versions.append(changed.version)
            assert versions == [2, 2, 3, 4, 5]
            assert (await fixture.read(table.id)).parameters == {}

    sim.run(scenario())


def test_lock_beside_another_parameter_is_refused(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as fixture:
            catalog = Catalog(fixture.descriptors)
            await fixture.create("flights")
            transaction = fixture.store.begin()
            table = await catalog.resolve(transaction, _name("flights"))
            with pytest.raises(SQLError, match="must be the only change") as caught:
                await catalog.set_parameters(
                    transaction, table, {"schema_locked": True, "gc.ttlseconds": 5}
                )
            assert caught.value.sqlstate == "25001"
            await transaction.rollback()

    sim.run(scenario())


def test_dropping_a_locked_table_is_refused(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as fixture:
            catalog = Catalog(fixture.descriptors)
            await fixture.create("flights", locked=True)
            transaction = fixture.store.begin()
            with pytest.raises(SQLError, match="is locked") as caught:
                await catalog.drop_tables(transaction, [_name("flights")])
            assert caught.value.sqlstate == "57000"
            await transaction.rollback()

    sim.run(scenario())


def test_create_lock_and_drop_fit_one_transaction(sim: Simulation) -> None:
    """A table that nobody else has seen may be changed freely."""

    async def scenario() -> None:
        async with open_catalog(sim) as fixture:
            catalog = Catalog(fixture.descriptors)
            transaction = fixture.store.begin()
            created = await _created(catalog, transaction)
            locked = await catalog.set_parameters(
                transaction,
                await catalog.resolve(transaction, created_name := _name("flights")),
                {"schema_locked": True},
            )
            assert (locked.locked, locked.version) == (True, 1)
            await catalog.reset_parameters(transaction, locked, ["schema_locked"])
            await catalog.drop_tables(transaction, [created_name])
            await transaction.commit()
            assert (await fixture.read(created.id)).dropped

    sim.run(scenario())


def test_bootstrap_runs_once(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as fixture:
            table = await fixture.create()
            assert await bootstrap(fixture.store) is False
            assert await fixture.read(table.id) == table
            assert (await fixture.create("next")).id > table.id

    sim.run(scenario())


def test_ids_are_never_used_again(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as fixture:
            first = await fixture.create()
            await Catalog(fixture.descriptors).drop_tables(
                transaction := fixture.store.begin(), [_name("orders")]
            )
            await transaction.commit()
            assert (await fixture.create()).id == first.id + 1

    sim.run(scenario())


def test_table_is_shown_as_its_statement(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _begin(sim) as (catalog, transaction):
            parameters = {"schema_locked": True, "gc.ttlseconds": 60}
            table = await _created(catalog, transaction, parameters=parameters)
            assert show_create(table) == (
                "CREATE TABLE flights (\n"
                "    carrier STRING NOT NULL,\n"
                "    time_hour TIMESTAMPTZ NOT NULL,\n"
                "    delay DECIMAL DEFAULT 1.500000000,\n"
                "    CONSTRAINT flights_pkey PRIMARY KEY (time_hour, carrier)\n"
                ') WITH (changefeed_optimized = true, "gc.ttlseconds" = 60)'
            )
            error = duplicate_key(table, (table.columns[2].default, "UA"))
            assert error.sqlstate == "23505"
            assert error.message.endswith('unique constraint "flights_pkey"')
            assert error.detail == "Key (time_hour, carrier)=(1.500000000, UA) already exists."

    sim.run(scenario())
