"""Cluster settings that outlive the process: `system.settings`, and the values in memory."""

from __future__ import annotations

import asyncio

from ..kvlayer.access import StoreAccess
from ..kvlayer.clock import Timestamp
from ..kvlayer.errors import BatchTimestampBeforeGC, KVError, StoreClosed
from ..kvlayer.events import Event, ValueBatch
from ..kvlayer.settings import REGISTRY, SettingError
from .row_codec import codec_for
from .system_tables import SETTINGS

_settings = codec_for(SETTINGS)

RESTART_SECONDS = 0.1
"""Between two feeds of settings, where the first one ended."""


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
        self._task = asyncio.create_task(self._follow(after), name="settings watcher")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _follow(self, after: Timestamp) -> None:
        while True:
            try:
                await load_settings(self._store)  # as of later than `after`: nothing is missed
                feed = self._store.span_feed([SETTINGS.primary_span], after)
                try:
                    while True:
                        for event in await feed.next():
                            self._take(event)
                        after = max(after, feed.frontier.low_water)
                finally:
                    feed.close()
            except StoreClosed:
                return
            except BatchTimestampBeforeGC:
                after = self._store.clock.last
            except KVError:
                self._store.metrics.add("settings_watcher_restarts_total")
            await asyncio.sleep(RESTART_SECONDS)

    def _take(self, event: Event) -> None:
        if not isinstance(event, ValueBatch):
            return
        for key, body in zip(event.keys, event.values, strict=True):
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
    setting = REGISTRY.get(name)
    if setting is None:
        raise SettingError(f"unknown cluster setting {name!r}")
    try:
        setting.parse(text)
    except SettingError as error:
        raise SettingError(f"cluster setting {name}: {error}") from None
    key, body = _settings.encode_row((name, text))
    await store.one_phase(lambda evaluation: evaluation.put([key], [body]))
    store.settings.set(name, text)


async def reset_setting(store: StoreAccess, name: str) -> None:
    """Forgets the persisted value; the default takes effect."""
    if name not in REGISTRY:
        raise SettingError(f"unknown cluster setting {name!r}")
    key = _settings.encode_key((name,))
    await store.one_phase(lambda evaluation: evaluation.delete([key]))
    store.settings.reset(name)
