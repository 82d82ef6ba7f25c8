"""Ids of virtual tables: those of the catalogs, and those that a statement makes while it runs."""

from __future__ import annotations

from ...catalog.descriptors.descriptor import TableDescriptor

GIVEN_ID = -1_000_000
"""The id of the first table that a statement makes while it runs (`given_tables`); further ones
count down."""


def in_catalog(descriptor: TableDescriptor) -> bool:
    """Whether the table is one of the catalog's, whose types are not PostgreSQL's."""
    return GIVEN_ID < descriptor.id < 0


def is_virtual(descriptor: TableDescriptor) -> bool:
    return descriptor.id < 0
