"""Registries of schemas: what gives the schemas of messages in Avro their ids.

POST /subjects/orders-value/versions {"schema": "…"}     {"id": 7}

As Confluent's registry has it, and others do. A registry that does not answer is asked again; one
that takes a schema for wrong, or for incompatible with those before it, refuses the feed.
"""

from .registry import SchemaRegistry, check_avro, check_registry

__all__ = ["SchemaRegistry", "check_avro", "check_registry"]
