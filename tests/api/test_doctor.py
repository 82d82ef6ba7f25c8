"""`tailrace doctor`: what is here, what is missing and for what."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.api.cli.app import app
from tests.harness.java import fake_java


def findings() -> dict[str, str]:
    """What doctor prints, by the name of the finding. It exits with 0."""
    answer = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "300"})
    assert answer.exit_code == 0, answer.output
    lines = [line.split(maxsplit=1) for line in answer.output.splitlines()]
    return {line[0]: line[1].strip() for line in lines}


def test_what_is_here_is_shown_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = findings()
    assert found["java"] == f"21 ({home}/bin/java)"
    assert {"tailrace", "python", "duckdb", "pyarrow", "rocksdict", "sqlglot"} <= set(found)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ('java version "1.8.0_392"', "is Java 8: Spark needs Java 17 or newer"),
        ("nothing of use", "does not say its version"),
    ],
)
def test_a_java_that_will_not_do_is_named_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, why: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, says)))
    line = findings()["java"]
    assert line.startswith("missing, for the Spark source and lakes: ")
    assert f"{tmp_path}/bin/java" in line
    assert why in line


def test_what_is_missing_says_for_what_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    find = importlib.util.find_spec

    def find_no_spark(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "pyspark" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_no_spark)
    found = findings()
    assert found["pyspark"].endswith("pip install 'tailrace[spark]'")
    assert found["java"].endswith("Spark needs Java 17 (openjdk-17-jre-headless)")
