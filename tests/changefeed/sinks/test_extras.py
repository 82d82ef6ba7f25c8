"""Packages that only some sinks need."""

from __future__ import annotations

import asyncio
import sys
import threading
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.sinks.extras import AVRO, DELTA, ICEBERG, KAFKA, Extra
from tailrace.changefeed.sinks.kafka.kind import KafkaKind
from tailrace.kvlayer.process.offload import ThreadOffload

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_they_are_imported_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_import.py").write_text("import threading\nBY = threading.get_ident()\n")
    monkeypatch.syspath_prepend(tmp_path)
    with closing(ThreadOffload()) as offload:
        asyncio.run(Extra("slow", "slow-package", "slow_to_import").load(offload))
    assert threading.get_ident() != sys.modules.pop("slow_to_import").BY


def test_what_is_missing_says_how_to_get_it() -> None:
    with closing(ThreadOffload()) as offload, pytest.raises(SQLError) as caught:
        asyncio.run(Extra("slow", "slow-package", "nowhere_to_be_found").load(offload))
    assert (caught.value.sqlstate, caught.value.hint) == ("0A000", "pip install 'tailrace[slow]'")
    assert "the package slow-package is not installed" in str(caught.value)


def test_messages_in_avro_need_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    async def load(extra: Extra, lane: object) -> None:
        loaded.append(extra)

    monkeypatch.setattr(Extra, "load", load)
    texts = {"format": "avro", "confluent_schema_registry": "https://registry"}
    with closing(ThreadOffload()) as offload:
        kind = KafkaKind(offload)
        asyncio.run(kind.load(parse_options({}), offload))
        asyncio.run(kind.load(parse_options(texts), offload))
    assert loaded == [KAFKA, KAFKA, AVRO]


def test_each_is_an_extra_of_the_project() -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    for extra in (AVRO, DELTA, ICEBERG, KAFKA):
        assert any(each.startswith(extra.package) for each in extras[extra.name]), extra
