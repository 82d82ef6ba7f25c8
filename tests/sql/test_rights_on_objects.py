"""Rights on sequences and types, and what goes with a schema."""

from __future__ import annotations

import pytest

from tests.harness.people import People, refused, rows, run, sql

NUMBERS = "CREATE SEQUENCE numbers"
MOOD = "CREATE TYPE mood AS ENUM ('sad', 'glad')"


@pytest.mark.parametrize(
    ("call", "privileges", "named"),
    [
        ("nextval('numbers')", ("USAGE", "UPDATE"), "USAGE"),
        ("currval('numbers')", ("USAGE", "SELECT"), "USAGE"),
        ("setval('numbers', 7)", ("UPDATE",), "UPDATE"),
    ],
)
def test_sequences_are_used_by_right(call: str, privileges: tuple[str, ...], named: str) -> None:
    async def scenario(people: People) -> None:
        told = await refused(people.ada, f"SELECT {call}")
        assert told == f"user ada does not have {named} privilege on sequence numbers"
        for privilege in privileges:
            await people.root(f"GRANT {privilege}, USAGE ON SEQUENCE numbers TO ada")
            await sql(people.ada, "SELECT nextval('numbers')")
            await people.root("REVOKE USAGE ON SEQUENCE numbers FROM ada")
            if privilege == "USAGE":
                await people.root("GRANT USAGE ON SEQUENCE numbers TO ada")
            await sql(people.ada, f"SELECT {call}")
            await people.root("REVOKE ALL ON SEQUENCE numbers FROM ada")
            await refused(people.ada, f"SELECT {call}")

    run(scenario, NUMBERS)


def test_the_right_on_a_sequence_is_asked_for_everywhere() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT SELECT, INSERT ON orders, drawn TO ada")
        for statement in (
            "INSERT INTO orders VALUES (nextval('numbers'), 'x')",
            "SELECT nextval('numbers'), k FROM orders",
            "INSERT INTO drawn (v) VALUES (1)",
            "BEGIN; SELECT nextval('numbers')",
            "CREATE TABLE made AS SELECT nextval('numbers') AS n",
        ):
            told = await refused(people.ada, statement)
            assert told == "user ada does not have USAGE privilege on sequence numbers"
            await people.ada.execute("ROLLBACK")
        await people.root("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ada")
        await sql(people.ada, "INSERT INTO drawn (v) VALUES (1)")

    drawn = "CREATE TABLE drawn (k INT8 PRIMARY KEY DEFAULT nextval('numbers'), v INT8)"
    run(scenario, NUMBERS, drawn)


def test_an_identity_column_asks_for_insert_alone() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT INSERT ON own TO ada")
        await sql(people.ada, "INSERT INTO own (v) VALUES (1)")
        await refused(people.bo, "SELECT nextval('own_k_seq')")

    own = "CREATE TABLE own (k INT8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v INT8)"
    run(scenario, own)


def test_columns_of_a_type_need_usage() -> None:
    async def scenario(people: People) -> None:
        await sql(people.ada, "CREATE TABLE a (k INT8 PRIMARY KEY, m mood)")
        await people.root("REVOKE USAGE ON TYPE mood FROM public")
        for statement in (
            "CREATE TABLE b (k INT8 PRIMARY KEY, m mood[])",
            "ALTER TABLE a ADD COLUMN more mood",
        ):
            told = await refused(people.ada, statement)
            assert told == "user ada does not have USAGE privilege on type mood"
        await people.root("GRANT USAGE ON TYPE mood TO ada")
        await sql(people.ada, "CREATE TABLE b (k INT8 PRIMARY KEY, m mood[])")
        await sql(people.ada, "INSERT INTO a VALUES (1, 'glad')")

    run(scenario, MOOD)


def test_sequences_and_types_have_owners() -> None:
    async def scenario(people: People) -> None:
        told = await refused(people.ada, "DROP SEQUENCE numbers")
        assert told == "user ada does not have DROP privilege on sequence numbers"
        told = await refused(people.ada, "ALTER TYPE mood ADD VALUE 'mad'")
        assert told == "user ada does not have CREATE privilege on type mood"
        done = await people.node.sql("ALTER SEQUENCE numbers OWNER TO ada")
        assert done.tag == "ALTER SEQUENCE"
        done = await people.node.sql("ALTER TYPE mood OWNER TO ada")
        assert done.tag == "ALTER TYPE"
        await sql(people.ada, "SELECT nextval('numbers'), setval('numbers', 9)")
        await sql(people.ada, "ALTER TYPE mood ADD VALUE 'mad'; DROP SEQUENCE numbers")

    run(scenario, NUMBERS, MOOD)


def test_what_keeps_a_role_is_named() -> None:
    async def scenario(people: People) -> None:
        await people.root("ALTER SEQUENCE numbers OWNER TO ada")
        await people.root("GRANT SELECT ON orders TO ada; GRANT USAGE ON TYPE mood TO ada")
        error = await people.node.error("DROP USER ada")
        assert error.sqlstate == "2BP01"
        assert error.detail == (
            "It has privileges on table orders; it has privileges on type mood; "
            "it owns sequence numbers."
        )
        await people.root("ALTER SEQUENCE numbers OWNER TO bo; REVOKE ALL ON orders FROM ada")
        await people.root("REVOKE ALL ON TYPE mood FROM ada; DROP USER ada")
        await sql(people.bo, "SELECT nextval('numbers')")

    run(scenario, NUMBERS, MOOD)


def test_grants_on_sequences_and_types_are_told() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT USAGE, SELECT ON SEQUENCE numbers TO ada")
        grants = "SELECT full_name, kind, privilege, grantable FROM tailrace_internal.grants "
        grants += "WHERE grantee = '{}' AND kind IN ('sequence', 'type') ORDER BY 1, 3"
        assert await people.root(grants.format("ada")) == [
            ("public.numbers", "sequence", "SELECT", False),
            ("public.numbers", "sequence", "USAGE", False),
        ]
        shown = await people.root(grants.format("public"))
        assert ("public.mood", "type", "USAGE", False) in shown
        held = "has_sequence_privilege('numbers', 'USAGE'), has_type_privilege('mood', 'USAGE')"
        asked = f"SELECT {held}, has_sequence_privilege('numbers', 'UPDATE')"
        assert await rows(people.ada, asked) == [(True, True, False)]
        assert await rows(people.bo, asked) == [(False, True, False)]
        told = await people.root("SELECT relacl FROM pg_class WHERE relname = 'numbers'")
        assert told == [(["root=rwU/root", "ada=rU/root"],)]
        assert await refused(people.node.first, "GRANT SELECT ON numbers TO bo", "42809")
        await refused(people.node.first, "GRANT INSERT ON SEQUENCE numbers TO bo", "0LP01")
        await refused(people.node.first, "GRANT USAGE ON TYPE nosuch TO bo", "42704")
        await refused(people.ada, "GRANT USAGE ON SEQUENCE numbers TO bo")

    run(scenario, NUMBERS, MOOD)


FILLED = """
CREATE SCHEMA shop; CREATE SEQUENCE shop.numbers; CREATE TYPE shop.mood AS ENUM ('sad');
CREATE TABLE shop.t (k INT8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m shop.mood,
                     n INT8 DEFAULT nextval('shop.numbers'));
GRANT USAGE ON SEQUENCE shop.numbers TO ada
"""


def test_a_schema_takes_its_sequences_and_types_along() -> None:
    async def scenario(people: People) -> None:
        error = await people.node.error("DROP SCHEMA shop")
        assert error.sqlstate == "2BP01"
        assert error.detail == "Objects in it: t, numbers, t_k_seq, mood."
        await people.root("DROP SCHEMA shop CASCADE; CREATE SCHEMA shop")
        assert await people.root("SELECT * FROM pg_sequences") == []
        assert await people.root("SELECT * FROM pg_enum") == []
        await people.root("DROP USER ada")  # nothing is left that ada had a privilege on
        await people.root("CREATE SEQUENCE shop.numbers; CREATE TYPE shop.mood AS ENUM ('other')")
        assert (await people.node.error("DROP SCHEMA shop")).detail == (
            "Objects in it: numbers, mood."
        )

    run(scenario, FILLED)


def test_what_a_schema_is_needed_for_elsewhere_is_named() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE TABLE user_of_mood (k INT8 PRIMARY KEY, m shop.mood)")
        error = await people.node.error("DROP SCHEMA shop CASCADE")
        assert error.message == (
            'cannot drop type "mood" because other objects (user_of_mood) still depend on it'
        )
        await people.root("DROP TABLE user_of_mood")
        await people.root("CREATE TABLE d (k INT8 PRIMARY KEY DEFAULT nextval('shop.numbers'))")
        error = await people.node.error("DROP SCHEMA shop CASCADE")
        assert error.sqlstate == "2BP01"
        assert 'the default of column "k" of table "d" draws from it' in error.message
        await people.root("DROP TABLE d; DROP SCHEMA shop CASCADE")

    run(scenario, FILLED)


def test_a_database_takes_its_sequences_and_types_along() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE DATABASE other; USE other")
        await people.root("CREATE SEQUENCE numbers; CREATE TYPE mood AS ENUM ('sad')")
        await people.root("USE defaultdb")
        await people.root("DROP DATABASE other; CREATE DATABASE other; USE other")
        assert await people.root("SELECT * FROM pg_sequences") == []
        await people.root("CREATE SEQUENCE numbers")
        assert await people.root("SELECT nextval('numbers')") == [(1,)]

    drawn = "CREATE TABLE drawn (k INT8 PRIMARY KEY DEFAULT nextval('numbers'))"
    run(scenario, NUMBERS, drawn)
