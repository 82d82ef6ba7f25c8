"""Cluster settings that outlive the process: `system.settings`, and the values in memory."""

from __future__ import annotations

from ..kvlayer.access import StoreAccess
from ..kvlayer.settings import REGISTRY, SettingError
from .row_codec import codec_for
from .system_tables import SETTINGS

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
