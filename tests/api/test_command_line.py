"""The command line before any command: help, version, configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.api.cli.lazy_group import read_settings
from tailrace.api.cli.main import app
from tailrace.api.refusal import NodeRefused

HEAVY = ("duckdb", "fastapi", "grpc", "pyarrow", "rocksdict", "sqlglot")
HELP = f"""
import sys
from tailrace.api.cli import main
try:
    main()
finally:
    assert not sys.modules.keys() & set({HEAVY!r}), sys.modules.keys() & set({HEAVY!r})
"""


def test_help_loads_no_engine() -> None:
    command = [sys.executable, "-c", HELP, "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "serve" in told.stdout and not told.stderr


@pytest.mark.parametrize("command", ["serve", "sql", "demo", "doctor", "bench", "debug"])
def test_each_command_has_its_help(command: str) -> None:
    told = CliRunner().invoke(app, [command, "--help"])
    assert told.exit_code == 0 and "Usage" in told.output


def test_demos_are_one_at_a_time() -> None:
    told = CliRunner().invoke(app, ["demo", "--relaxed", "--spark"])
    assert told.exit_code == 2 and "choose one" in told.output


def test_version_is_the_distributions() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.output) == (0, "tailrace 0.1.0\n")


def test_configuration_names_options(tmp_path: Path) -> None:
    path = tmp_path / "tailrace.toml"
    path.write_text("[doctor]\nwidth = 1\n")
    told = CliRunner().invoke(app, ["--config", str(path), "doctor"])
    assert isinstance(told.exception, NodeRefused)
    assert "[doctor] has width" in str(told.exception)


def test_configuration_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tailrace.toml"
    path.write_text("pg_port 5432")
    with pytest.raises(NodeRefused, match=r"cannot read the configuration .*tailrace\.toml"):
        read_settings(path)
