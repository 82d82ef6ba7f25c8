"""Whether a descriptor is in use."""

from __future__ import annotations

from enum import Enum


class DescriptorState(Enum):
    PUBLIC = "public"  # in use
    DROPPED = "dropped"  # its name is free again; kept so that feeds and old reads understand it
