"""Options of the whole suite."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tailrace.changefeed.sinks.duckdb.hosting import WORKERS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers",
        choices=["on", "off"],
        help="the default of the cluster setting changefeed.workers in this run",
    )


settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")  # the same examples at every run, however slow the machine is


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("--workers")
    if chosen is not None:
        object.__setattr__(WORKERS, "default", chosen)
