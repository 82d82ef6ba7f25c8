"""SET ROLE."""

from __future__ import annotations

from tests.harness.people import People, refused, rows, run, sql

ROLES = ("CREATE ROLE reader", "GRANT SELECT ON orders TO reader", "GRANT reader TO ada")
WHO = "SELECT current_user, session_user, current_setting('role')"


def test_rights_follow_the_current_role() -> None:
    async def scenario(people: People) -> None:
        ada = people.ada
        await people.root("GRANT INSERT ON orders TO ada")
        await sql(ada, "SET ROLE reader")
        assert await rows(ada, WHO) == [("reader", "ada", "reader")]
        assert await rows(ada, "SELECT * FROM orders") == [(1, "a")]
        told = await refused(ada, "INSERT INTO orders VALUES (2, 'b')")
        assert told == "user reader does not have INSERT privilege on relation orders"
        assert (await sql(ada, "RESET ROLE")).tag == "RESET"
        await sql(ada, "INSERT INTO orders VALUES (2, 'b')")
        assert await rows(ada, WHO) == [("ada", "ada", "none")]

    run(scenario, *ROLES)


def test_what_a_role_makes_is_the_roles() -> None:
    async def scenario(people: People) -> None:
        await sql(people.ada, "SET ROLE reader; CREATE TABLE made (k INT8 PRIMARY KEY)")
        await refused(people.bo, "SELECT * FROM made")
        await people.root("GRANT reader TO bo")
        assert await rows(people.bo, "SELECT * FROM made") == []

    run(scenario, *ROLES)


def test_a_role_is_for_its_members() -> None:
    async def scenario(people: People) -> None:
        told = await refused(people.bo, "SET ROLE reader")
        assert told == 'permission denied to set role "reader"'
        assert await refused(people.bo, "SET ROLE ada") == 'permission denied to set role "ada"'
        told = await refused(people.bo, "SET ROLE nobody", "22023")
        assert told == 'role "nobody" does not exist'
        await refused(people.bo, "SELECT set_config('role', 'ada', false)", "22023")
        await refused(people.bo, "SET session_authorization = 'ada'", "55P02")
        await refused(people.bo, "SET SESSION AUTHORIZATION ada", "0A000")
        await sql(people.bo, "SET ROLE bo")
        await sql(people.node.first, "SET ROLE = 'bo'")  # an admin may act as anybody
        told = await refused(people.node.first, "SELECT * FROM orders")
        assert told == "user bo does not have SELECT privilege on relation orders"
        await sql(people.node.first, "SET ROLE NONE")

    run(scenario, *ROLES)


def test_a_role_is_undone_with_its_transaction() -> None:
    async def scenario(people: People) -> None:
        ada = people.ada
        await sql(ada, "BEGIN; SET ROLE reader; ROLLBACK")
        assert await rows(ada, "SELECT current_user") == [("ada",)]
        await sql(ada, "BEGIN; SAVEPOINT s; SET ROLE reader; ROLLBACK TO s")
        assert await rows(ada, "SELECT current_user") == [("ada",)]
        await sql(ada, "SET LOCAL ROLE reader")
        assert await rows(ada, "SELECT current_user") == [("reader",)]
        await sql(ada, "COMMIT")
        assert await rows(ada, "SELECT current_user") == [("ada",)]
        done = await sql(ada, "SET LOCAL ROLE reader")
        assert done.notice == "SET LOCAL can only be used in transaction blocks"
        await sql(ada, "BEGIN; SET ROLE reader; SET LOCAL ROLE NONE")
        assert await rows(ada, "SELECT current_user") == [("ada",)]
        await sql(ada, "COMMIT")
        assert await rows(ada, "SELECT current_user") == [("reader",)]

    run(scenario, *ROLES)


def test_a_pooled_connection_is_its_logins_again() -> None:
    async def scenario(people: People) -> None:
        await sql(people.ada, "SET ROLE reader")
        await sql(people.ada, "RESET ALL")
        assert await rows(people.ada, "SELECT current_user") == [("reader",)]
        await sql(people.ada, "DISCARD ALL")
        assert await rows(people.ada, WHO) == [("ada", "ada", "none")]

    run(scenario, *ROLES)


def test_a_role_of_this_transaction_counts() -> None:
    async def scenario(people: People) -> None:
        root = people.node.first
        await sql(root, "BEGIN; CREATE ROLE late; SET ROLE late")
        assert await rows(root, WHO) == [("late", "root", "late")]
        await sql(root, "ROLLBACK")
        await refused(people.ada, "SET ROLE late", "22023")

    run(scenario, *ROLES)
