"""Kafka: each change is a record of its table's topic, under its primary key.

    kafka://b1:9092,b2:9092?topic_prefix=eu_    topic eu_orders, key [1], value {"after": …}

`KafkaSender` needs confluent-kafka, which comes with `pip install 'tailrace[kafka]'`; judging a URI
does not.
"""

from .kind import KafkaKind
from .target import SCHEMES

__all__ = ["SCHEMES", "KafkaKind"]
