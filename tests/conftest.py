"""Options of the whole suite."""

from __future__ import annotations

import pytest

from tailrace.changefeed.sinks.duckdb.hosting import WORKERS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers",
        choices=["on", "off"],
        help="the default of the cluster setting changefeed.workers in this run",
    )


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("--workers")
    if chosen is not None:
        object.__setattr__(WORKERS, "default", chosen)
