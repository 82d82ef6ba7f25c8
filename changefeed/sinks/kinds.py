"""The kinds of sinks, by the schemes of their URIs."""

from __future__ import annotations

from collections.abc import Mapping

from ...catalog.values.errors import SQLError
from .kind import SinkKind
from .null import NullKind
from .worker import WorkerKind

AnyKind = SinkKind | WorkerKind


class SinkKinds:
    """The schemes that sink URIs may have in this process. Schemes ignore case."""

    def __init__(self, kinds: Mapping[str, AnyKind]) -> None:
        self._kinds = {scheme.lower(): kind for scheme, kind in kinds.items()}

    def register(self, scheme: str, kind: AnyKind) -> None:
        """Adds a kind. A scheme stands for one kind."""
        assert scheme.lower() not in self._kinds, scheme
        self._kinds[scheme.lower()] = kind

    def kind_of(self, uri: str) -> AnyKind:
        """The kind behind `uri`. Raises SQLError 22023 on a scheme that is not known."""
        scheme, separator, _ = uri.partition("://")
        if not separator:
            raise SQLError(
                "22023",
                "what is given is not a sink URI",
                hint=f"Write scheme://…, with one of the schemes {self._known}.",
            )
        kind = self._kinds.get(scheme.lower())
        if kind is None:
            raise SQLError(
                "22023",
                f"unknown sink scheme {scheme!r}",
                hint=f"Known schemes: {self._known}.",
            )
        return kind

    @property
    def _known(self) -> str:
        return ", ".join(sorted(self._kinds))


def scheme_of(uri: str) -> str:
    """The sink's name in errors: never more of `uri`, which may hold secrets."""
    return uri.partition("://")[0].lower()


def default_kinds() -> SinkKinds:
    """The kinds that need nothing but the store."""
    return SinkKinds({"null": NullKind()})
