"""The masters of Spark that a lake may name: those of a list that admins set.

    SET CLUSTER SETTING changefeed.lake.masters = 'local, spark://spark-1:7077'

`local` stands for this machine with any number of threads. Whoever names a cluster has the server
connect to it and hand its workers a token, so it is not for the feed's creator to choose any.
"""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ....kvlayer.settings import SettingError, declare_text

LOCAL = "local"
_CLUSTER = "spark://"


def _parse(text: str) -> str:
    """The list, put in form. Raises SettingError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name != LOCAL and not name.startswith(_CLUSTER):
            raise SettingError(f"{name!r} is no master: write local, or spark://host:port")
    return ", ".join(names)


MASTERS = declare_text(
    "changefeed.lake.masters",
    LOCAL,
    "masters of Spark that feeds into lakes may name, between commas; local stands for local[n]",
    _parse,
)


def check_master(master: str, allowed: str) -> None:
    """Raises SQLError 42501 for a master that is not in the list."""
    name = LOCAL if master == LOCAL or master.startswith(f"{LOCAL}[") else master
    if name not in allowed.split(", "):
        raise SQLError(
            "42501",
            f"master {master!r} is not one that lakes may name",
            detail=f"The cluster setting {MASTERS.name} has {allowed or 'none'}.",
            hint="An admin adds it there.",
        )
