"""Cluster settings that outlive the process: `system.settings`, and the values in memory."""

from __future__ import annotations

import asyncio

from ...kvlayer.access import StoreAccess
from ...kvlayer.events import ValueBatch
from ...kvlayer.settings import REGISTRY
from ..descriptors.system_tables import SETTINGS
from ..rows.row_codec import codec_for
from .span_follower import follow_spans

_settings = codec_for(SETTINGS)


async def load_settings(store: StoreAccess) -> list[str]:
    """Gives `store.settings` the persisted values; returns the names that nobody knows any more."""
    rows = await store.snapshot(await store.now()).scan(SETTINGS.primary_span)
    unknown: list[str] = []
    for key, body in rows:
        name, value = map(str, _settings.decode_row(key, body))
        if name in REGISTRY:
            store.settings.set(name, value)
        else:
            unknown.append(name)  # a later or earlier version's: kept, and without effect here
    return unknown


class SettingsWatcher:
    """Keeps a node's settings as the store has them, whichever node has changed them."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Loads what is persisted, and begins to follow it."""
        assert self._task is None, "the settings are followed already"
        after = await self._store.now()
        await load_settings(self._store)
        following = follow_spans(
            self._store,
            [SETTINGS.primary_span],
            after,
            refresh=self._refresh,  # as of later than `after`: nothing is missed
            take=self._take,
            restarts="settings_watcher_restarts_total",
        )
        self._task = asyncio.create_task(following, name="settings watcher")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _refresh(self) -> None:
        await load_settings(self._store)

    async def _take(self, written: ValueBatch) -> None:
        for key, body in zip(written.keys, written.values, strict=True):
            if body is None:
                name = str(_settings.decode_key(key)[0])
                if name in REGISTRY:
                    self._store.settings.reset(name)
                continue
            name, value = map(str, _settings.decode_row(key, body))
            if name in REGISTRY:
                self._store.settings.set(name, value)


async def set_setting(store: StoreAccess, name: str, text: str) -> None:
    """Persists a value, then lets it take effect. Raises SettingError, having done neither."""
    store.settings.check(name, text)
    key, body = _settings.encode_row((name, text))
    await store.one_phase(lambda evaluation: evaluation.put([key], [body]))
    store.settings.set(name, text)


async def reset_setting(store: StoreAccess, name: str) -> None:
    """Forgets the persisted value; the default takes effect. Raises SettingError."""
    store.settings.check(name, None)
    key = _settings.encode_key((name,))
    await store.one_phase(lambda evaluation: evaluation.delete([key]))
    store.settings.reset(name)
