"""What is promised of transactions holds however their writes are held meanwhile."""

from collections.abc import Iterator

import pytest

from tests.harness import stores


@pytest.fixture(
    autouse=True, params=["0", "600", "1048576"], ids=["intents", "spilled", "buffered"]
)
def buffer_bytes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of stores that ask for no settings of their own."""
    stores.DEFAULTS["kv.transaction.buffer_bytes"] = request.param
    yield
    stores.DEFAULTS.clear()
