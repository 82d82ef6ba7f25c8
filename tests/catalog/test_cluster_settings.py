"""Settings that outlive the process."""

from __future__ import annotations

import pytest

from tailrace.catalog.store.cluster_settings import load_settings, reset_setting, set_setting
from tailrace.kvlayer.settings import SettingError, parse_bytes
from tailrace.kvlayer.store import FLUSH_BYTES, Store
from tests.harness.nodes import open_catalog
from tests.harness.simulation import Simulation
from tests.harness.stores import reopen


async def _reopened(sim: Simulation) -> Store:
    store = await reopen(sim)
    assert await load_settings(store) == []
    return store


def test_setting_survives_a_crash(sim: Simulation) -> None:
    async def before() -> None:
        async with open_catalog(sim) as catalog:
            await set_setting(catalog.store, FLUSH_BYTES.name, "12345")
            assert catalog.store.settings.get(FLUSH_BYTES) == 12345

    async def after() -> None:
        store = await _reopened(sim)
        assert store.settings.get(FLUSH_BYTES) == 12345
        await reset_setting(store, FLUSH_BYTES.name)
        assert store.settings.get(FLUSH_BYTES) == FLUSH_BYTES.default
        await store.close()

    async def last() -> None:
        store = await _reopened(sim)
        assert store.settings.get(FLUSH_BYTES) == FLUSH_BYTES.default
        await store.close()

    for scenario in (before, after, last):
        sim.run(scenario())


@pytest.mark.parametrize(("name", "text"), [("no.such", "1"), (FLUSH_BYTES.name, "many")])
def test_bad_setting_changes_nothing(sim: Simulation, name: str, text: str) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            with pytest.raises(SettingError, match=name):
                await set_setting(catalog.store, name, text)
            assert await load_settings(catalog.store) == []
            assert catalog.store.settings.get(FLUSH_BYTES) == FLUSH_BYTES.default

    sim.run(scenario())


@pytest.mark.parametrize(
    ("text", "count"),
    [("12345", 12345), ("64MiB", 64 << 20), (" 1 gib ", 1 << 30), ("16MB", 16_000_000), ("-1", -1)],
)
def test_bytes_may_have_a_unit(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "MiB", "--1", "1.5GiB", "64 miles", "٦٤MiB"])
def test_other_words_are_no_bytes(text: str) -> None:
    with pytest.raises(SettingError, match="write 64MiB"):
        parse_bytes(text)


def test_setting_of_bytes_takes_a_unit(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            await set_setting(catalog.store, FLUSH_BYTES.name, "8MiB")
            assert catalog.store.settings.get(FLUSH_BYTES) == 8 << 20

    sim.run(scenario())
