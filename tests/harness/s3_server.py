"""A real S3 server (moto's), which can be told to be slow, to refuse, and to lose its answers."""

from __future__ import annotations

from typing import Any, Self
from urllib.parse import quote
from urllib.request import Request, urlopen

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from tests.harness.faulty_server import FaultyServer

BUCKET = "lake"
SECRET = "kanari7/+secret"


class S3Server(FaultyServer):
    """A server with one empty bucket, on a port of this machine."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(DomainDispatcherApplication(create_backend_app), seed)

    def __enter__(self) -> Self:
        super().__enter__()
        # The servers of a process have one memory.
        urlopen(Request(f"{self.endpoint}/moto-api/reset", method="POST")).close()
        self.client.create_bucket(Bucket=BUCKET)
        return self

    @property
    def client(self) -> Any:
        """A client that shares no code with the sink."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="app",
            aws_secret_access_key=SECRET,
        )

    def uri(self, folder: str, parameters: str = "") -> str:
        return (
            f"s3://{BUCKET}/{folder}?AWS_ACCESS_KEY_ID=app&AWS_SECRET_ACCESS_KEY="
            f"{quote(SECRET, safe='')}&AWS_ENDPOINT={quote(self.endpoint, safe='')}{parameters}"
        )

    def objects(self) -> dict[str, bytes]:
        """All objects of the bucket, in the order of their names."""
        client = self.client
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        keys = sorted(entry["Key"] for page in pages for entry in page.get("Contents", ()))
        return {key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}
