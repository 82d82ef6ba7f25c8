"""Cluster settings: the registry, their values, and who wants to hear of a change.

Each folder declares its own settings beside the code that obeys them; `SET CLUSTER SETTING` and
`SHOW CLUSTER SETTINGS` see them all.

    POLL_INTERVAL = declare_duration("changefeed.experimental_poll_interval", 1.0, "how often ...")
    settings.get(POLL_INTERVAL)    # seconds
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

V = TypeVar("V", int, float, bool, str)


class SettingError(ValueError):
    """A setting that does not exist, or a value that it does not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[V]):
    """A named value with a default. Durations are seconds."""

    name: str
    default: V
    description: str
    parse: Callable[[str], V]
    kind: str


REGISTRY: dict[str, Setting[int] | Setting[float] | Setting[bool] | Setting[str]] = {}

_ORDERS: list[tuple[Setting[float], Setting[float]]] = []

_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(us|µs|ms|s|m|h|d)")


def parse_duration(text: str) -> float:
    """Seconds of `1s`, `200ms`, `1m30s` or a plain number of seconds. Raises SettingError."""
    stripped = text.strip()
    parts = _DURATION_PART.findall(stripped)
    if parts and "".join(number + unit for number, unit in parts) == stripped:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        seconds = float(stripped)
    except ValueError:
        raise SettingError(f"{text!r} is not a duration: write 200ms, 1s, 1m30s") from None
    if seconds < 0 or seconds != seconds or seconds == float("inf"):
        raise SettingError(f"{text!r} is not a duration: it must be zero or more")
    return seconds


_BYTES = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}  # fmt: skip
_SIZE = re.compile(r"(-?\d+)\s*([a-z]*)", re.ASCII)


def parse_bytes(text: str) -> int:
    """Bytes of `64MiB`, `64MB` or a plain number of bytes. Raises SettingError. Numbers below zero
    are in the settings of older stores, and as good as zero."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in _BYTES:
        raise SettingError(f"{text!r} is not a number of bytes: write 64MiB, 64MB or 67108864")
    return int(found[1]) * _BYTES[found[2]]


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{text!r} is not a whole number: write 64, without a unit") from None


def _parse_bool(text: str) -> bool:
    match text.strip().lower():
        case "true" | "t" | "on" | "yes" | "1":
            return True
        case "false" | "f" | "off" | "no" | "0":
            return False
    raise SettingError(f"{text!r} is not a boolean: write true or false")


def _declared(
    name: str, default: V, description: str, parse: Callable[[str], V], kind: str
) -> Setting[V]:
    """Registers a setting, whose name is unique in the process."""
    setting = Setting(name=name, default=default, description=description, parse=parse, kind=kind)
    assert name not in REGISTRY, name
    REGISTRY[name] = setting
    return setting


def declare_duration(name: str, default: float, description: str) -> Setting[float]:
    """Registers a duration in seconds."""
    return _declared(name, default, description, parse_duration, "duration")


def declare_int(name: str, default: int, description: str) -> Setting[int]:
    return _declared(name, default, description, _parse_int, "integer")


def declare_bytes(name: str, default: int, description: str) -> Setting[int]:
    """Registers a number of bytes, which may be given with its unit."""
    return _declared(name, default, description, parse_bytes, "byte size")


def declare_bool(name: str, default: bool, description: str) -> Setting[bool]:
    return _declared(name, default, description, _parse_bool, "boolean")


def declare_text(
    name: str, default: str, description: str, parse: Callable[[str], str]
) -> Setting[str]:
    """Registers a setting whose text `parse` checks: it raises SettingError."""
    return _declared(name, default, description, parse, "string")


def declare_choice(
    name: str, default: str, choices: Sequence[str], description: str
) -> Setting[str]:
    """Registers a setting that is one of some words, in any case."""
    assert default in choices, (default, choices)

    def parse(text: str) -> str:
        chosen = text.strip().lower()
        if chosen not in choices:
            raise SettingError(f"{text!r} is not one of {', '.join(choices)}")
        return chosen

    return _declared(name, default, description, parse, "choice")


def declare_less(lesser: Setting[float], greater: Setting[float]) -> None:
    """From here on who sets one of two durations is refused where the first would not stay below
    the second (`Settings.check`)."""
    assert lesser.default < greater.default, (lesser, greater)
    _ORDERS.append((lesser, greater))


class Settings:
    """The values of one store's settings."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, int | float | bool | str] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._changed = asyncio.Event()
        """Set when a setting changes, and then another takes its place."""
        for name, text in (values or {}).items():
            self.set(name, text)

    def get(self, setting: Setting[V]) -> V:
        value = self._values.get(setting.name, setting.default)
        assert isinstance(value, type(setting.default)), (setting.name, value)
        return value

    def set(self, name: str, text: str) -> None:
        """Takes a value as text. Raises SettingError and changes nothing if it does not fit."""
        setting = REGISTRY.get(name)
        if setting is None:
            raise SettingError(f"unknown cluster setting {name!r}")
        try:
            self._values[name] = setting.parse(text)
        except SettingError as error:
            raise SettingError(f"cluster setting {name}: {error}") from None
        self._notify(name)

    def check(self, name: str, text: str | None) -> None:
        """Raises SettingError where the value (None: the default) does not fit, by itself or beside
        the other settings."""
        setting = REGISTRY.get(name)
        if setting is None:
            raise SettingError(f"unknown cluster setting {name!r}")
        try:
            value = setting.default if text is None else setting.parse(text)
        except SettingError as error:
            raise SettingError(f"cluster setting {name}: {error}") from None
        for lesser, greater in _ORDERS:
            low = value if lesser.name == name else self.get(lesser)
            high = value if greater.name == name else self.get(greater)
            if name in (lesser.name, greater.name) and float(low) >= float(high):
                raise SettingError(
                    f"cluster setting {lesser.name} ({float(low):g} s) must stay below "
                    f"{greater.name} ({float(high):g} s)"
                )

    def reset(self, name: str) -> None:
        """Back to the default."""
        if name not in REGISTRY:
            raise SettingError(f"unknown cluster setting {name!r}")
        self._values.pop(name, None)
        self._notify(name)

    async def sleep(self, setting: Setting[float], *, at_most: float = inf) -> None:
        """Returns when as long as the setting says, and no longer than `at_most`, has passed since
        the call. A change counts at once, also for who sleeps already."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        while (left := began_at + min(self.get(setting), at_most) - loop.time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    def listen(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with the name of each setting that changes."""
        self._listeners.append(listener)

    def _notify(self, name: str) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        for listener in self._listeners:
            listener(name)
