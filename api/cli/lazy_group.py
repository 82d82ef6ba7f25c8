"""A command line whose commands are loaded when they are called: help and completion load none."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ..refusal import NodeRefused

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # what typer's own classes are declared with


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command of the module `module` in this folder: its function, or its group, is `name`."""

    name: str
    module: str
    attribute: str
    help: str

    def load(self) -> Command:
        found = getattr(import_module(f".{self.module}", __package__), self.attribute)
        if isinstance(found, typer.Typer):
            return get_command(found)
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(name=self.name)(found)
        return get_command(app)


class LazyGroup(TyperGroup):
    """The commands that `known` names."""

    known: dict[str, LazyCommand] = {}  # noqa: RUF012  set once, where the application is made

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.known)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command with its line of help alone: `resolve_command` loads it."""
        found = self.known.get(cmd_name)
        return None if found is None else TyperCommand(cmd_name, help=found.help)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or command is None:
            return name, command, rest
        loaded = self.known[name].load()
        _check_settings(loaded, name, (ctx.default_map or {}).get(name, {}))
        return name, loaded, rest


def read_settings(path: Path) -> dict[str, Any]:
    """Defaults of options, one table a command: `[serve]` with `pg_port = 5432`.

    Raises NodeRefused where the file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise NodeRefused(f"cannot read the configuration {path}: {error}") from error


def _check_settings(command: Command, name: str, given: Any) -> None:
    known = sorted(each.name for each in command.params if each.name is not None)
    if not isinstance(given, dict):
        raise NodeRefused(f"{name} in the configuration is no table: write [{name}]")
    if isinstance(command, TyperGroup):
        return
    for key in given:
        if key not in known:
            raise NodeRefused(
                f"the configuration's [{name}] has {key}, which is no option of `tailrace {name}`: "
                f"{', '.join(known)}"
            )
