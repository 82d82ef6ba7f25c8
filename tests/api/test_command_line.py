"""The command line before any command: help, version, configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.api.cli.app import app
from tailrace.api.cli.lazy_group import read_settings
from tailrace.api.cli.server_log import LogLevel, log_to
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


@pytest.mark.parametrize("module", ["tailrace", "tailrace.api.cli"])
def test_the_package_runs_as_a_module(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("tailrace ")


@pytest.mark.parametrize(
    "command", ["serve", "sql", "demo", "doctor", "bench", "debug", "raw", "relaxed", "replication"]
)
def test_each_command_has_its_help(command: str) -> None:
    told = CliRunner().invoke(app, [command, "--help"])
    assert told.exit_code == 0 and "Usage" in told.output
    assert "completion" not in told.output  # an option of `tailrace` alone


INTERRUPTED = """
import signal, sys
imports = 0
def interrupt(event, arguments):
    global imports
    imports += event == "import"
    if event == "import" and imports == place:
        signal.raise_signal(signal.SIGINT)
from tailrace.api.cli import main
place = int(sys.argv.pop(1))
sys.argv.append("doctor")
sys.addaudithook(interrupt)
main()
"""


@pytest.mark.parametrize("place", [1, 50, 150, 300])
def test_an_interruption_while_it_loads_leaves_no_traceback(place: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(place)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_the_log_has_its_file_and_its_level(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    program = (
        "import logging, pathlib, sys; from tailrace.api.cli.server_log import *; "
        "log_to(pathlib.Path(sys.argv[1]), LogLevel.INFO); server_log.info('told'); "
        "server_log.debug('not told'); logging.getLogger('sqlglot').info('not told')"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert [line.split(" ", 2)[2] for line in path.read_text().splitlines()] == [
        "INFO tailrace: told",
        "INFO tailrace: told",
    ]
    with pytest.raises(NodeRefused, match="cannot log to"):
        log_to(tmp_path, LogLevel.INFO)


def test_demos_are_one_at_a_time() -> None:
    told = CliRunner().invoke(app, ["demo", "--relaxed", "--spark"])
    assert told.exit_code == 2 and "choose one" in told.output


def test_version_is_the_distributions() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.output) == (0, "tailrace 0.1.0\n")


COMPLETED = """
source "$HOME/.bash_completions/tailrace.sh"
COMP_WORDS=(tailrace "$1") COMP_CWORD=1
_tailrace_completion tailrace
echo "${COMPREPLY[@]}"
"""


def test_installed_completion_completes_commands(tmp_path: Path) -> None:
    home = {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    install = ["tailrace", "--install-completion", "bash"]
    told = subprocess.run(install, env=home, capture_output=True, text=True, check=True)
    assert "completion installed" in told.stdout
    for typed, known in (("re", "restore replication relaxed"), ("do", "doctor"), ("x", "")):
        ask = ["bash", "-c", COMPLETED, "bash", typed]
        said = subprocess.run(ask, env=home, capture_output=True, text=True, check=True)
        assert (said.stdout.strip(), said.stderr) == (known, "")


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
