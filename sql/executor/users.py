"""CREATE, ALTER and DROP USER."""

from __future__ import annotations

from ...catalog.descriptor_store import DescriptorReader
from ...catalog.users import (
    User,
    alter_user,
    create_user,
    drop_user,
    list_users,
    make_verifier,
)
from ...kvlayer.txn import Transaction
from ..implicit import attempts, in_transaction
from ..parser.user_statements import AlterUser, CreateUser, DropUser
from ..results import BOOL, STRING, Result, Row, listing
from ..services import Services
from ..transactions import OpenTransaction

UserChange = CreateUser | AlterUser | DropUser


async def change_user(
    services: Services, statement: UserChange, opened: OpenTransaction | None
) -> Result:
    """Carries a statement out in the open transaction, or in one of its own."""
    if opened is not None:
        opened.refuse_read_only("CREATE, ALTER and DROP USER")
        return await opened.statement(lambda: _change(services, statement, opened.transaction))
    result, _, _ = await attempts(
        services,
        lambda scope: in_transaction(
            services.store,
            scope,
            lambda transaction: _change(services, statement, transaction),
        ),
    )
    return result


async def _change(services: Services, statement: UserChange, transaction: Transaction) -> Result:
    """Does not commit."""
    match statement:
        case CreateUser(name=name, if_not_exists=if_not_exists):
            user = _user(services, name, statement.password)
            new = await create_user(transaction, user, if_not_exists=if_not_exists)
            notice = None if new else f'role "{name}" already exists, skipping'
            return Result(tag="CREATE ROLE", notice=notice)
        case AlterUser(name=name):
            await alter_user(transaction, _user(services, name, statement.password))
            return Result(tag="ALTER ROLE")
        case DropUser(names=names, if_exists=if_exists):
            missing = [
                name
                for name in names
                if not await drop_user(transaction, name, if_exists=if_exists)
            ]
            skipped = ", ".join(f'role "{name}" does not exist, skipping' for name in missing)
            return Result(tag="DROP ROLE", notice=skipped or None)


def _user(services: Services, name: str, password: str | None) -> User:
    verifier = None if password is None else make_verifier(password, services.store.random)
    return User(name, verifier)


async def show_users(reader: DescriptorReader) -> Result:
    rows: list[Row] = [(user.name, user.verifier is not None) for user in await list_users(reader)]
    return listing("SHOW USERS", [("username", STRING), ("has_password", BOOL)], rows)
