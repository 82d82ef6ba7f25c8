"""Whose rights a session's statements have: SET ROLE and SET SESSION AUTHORIZATION.

    login             who the client proved to be; never changes
    session_user      the login, until SET SESSION AUTHORIZATION, which is for admins' logins
    current_user      the session's user, until SET ROLE makes it a role that it is a member of

Rights follow the current user, and what it makes is its own. Both are kept as session variables, so
they are undone with the transaction that has set them, SET LOCAL ends with it, and pools that say
DISCARD ALL hand on a connection that is its login's again. Who loses the membership keeps the role
until it is set anew, as in PostgreSQL.
"""

from __future__ import annotations

from ...catalog.rights.rights_watcher import RightsWatcher
from ...catalog.rights.users import ROOT, find_user
from ...catalog.values.errors import SQLError
from ..results.results import Result
from ..syntax.rights_statements import ActAs
from ..variables.client_variables import IS_SUPERUSER
from ..variables.variables import SessionVariables, Variable, show_bool
from .authorization import Actor
from .transactions import OpenTransaction

NONE = "none"
"""The value of `role` while no role is set."""


def _checked(text: str) -> str:
    """Membership is a thing of the store's, which set_config cannot ask."""
    raise ValueError("SET ROLE and SET SESSION AUTHORIZATION set it.")


ROLE = Variable(
    "role",
    NONE,
    parse=_checked,
    description="the role whose rights the session has, by SET ROLE",
    reset_by_all=False,
)
SESSION_AUTHORIZATION = Variable(
    "session_authorization",
    ROOT,
    parse=_checked,
    description="the session's user, by SET SESSION AUTHORIZATION",
    reset_by_all=False,
)


def begin_as(variables: SessionVariables, login: str, rights: RightsWatcher) -> None:
    """The session of a client that has proved to be `login` begins."""
    variables.begin_at(SESSION_AUTHORIZATION, login)
    variables.compute(
        IS_SUPERUSER, lambda: show_bool(rights.current.admin(current_user(variables)))
    )


def session_user(variables: SessionVariables) -> str:
    return variables.get(SESSION_AUTHORIZATION)


def current_user(variables: SessionVariables) -> str:
    role = variables.get(ROLE)
    return session_user(variables) if role == NONE else role


def act_as_login(variables: SessionVariables) -> None:
    """Returns to the user who logged in."""
    variables.reset(SESSION_AUTHORIZATION.name)
    variables.reset(ROLE.name)


async def act_as(
    actor: Actor,
    statement: ActAs,
    variables: SessionVariables,
    login: str,
    opened: OpenTransaction | None,
) -> Result:
    """Carries a statement out. Raises SQLError 22023 for an unknown role, 42501 for one that it may
    not act as."""
    if statement.session:
        name = login if statement.name is None else statement.name
        await _check_session_user(actor, name, login, statement.position)
    else:
        name = NONE if statement.name is None else statement.name
        await _check_role(actor, name, session_user(variables), statement.position)
    if statement.local and opened is None:
        return Result(tag="SET", notice="SET LOCAL can only be used in transaction blocks")
    if statement.session:
        variables.put(SESSION_AUTHORIZATION, name, local=statement.local)
        variables.put(ROLE, NONE, local=statement.local)
    else:
        variables.put(ROLE, name, local=statement.local)
    return Result(tag="RESET" if statement.reset else "SET")


async def _check_session_user(actor: Actor, name: str, login: str, position: int) -> None:
    if name == login:
        return
    if not (await actor.rights()).admin(login):
        raise SQLError(
            "42501",
            f'permission denied to set session authorization "{name}"',
            detail=f"User {login}, who has logged in, is no admin.",
            position=position,
        )
    await _check_there(actor, name, position)


async def _check_role(actor: Actor, name: str, user: str, position: int) -> None:
    if name in (NONE, user):
        return
    await _check_there(actor, name, position)
    rights = await actor.rights()
    if not rights.admin(user) and name not in rights.roles_of(user):
        raise SQLError(
            "42501",
            f'permission denied to set role "{name}"',
            detail=f"User {user} is no member of it.",
            position=position,
        )


async def _check_there(actor: Actor, name: str, position: int) -> None:
    if await find_user(actor.reader, name) is None:
        raise SQLError("22023", f'role "{name}" does not exist', position=position)
