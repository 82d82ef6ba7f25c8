"""A real S3 server (moto's), which can be told to be slow, to refuse, and to lose its answers."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "lake"
SECRET = "kanari7/+secret"


class S3Server:
    """A server with one empty bucket, on a port of this machine.

    Of its answers to writers a share of `refuse` is 503, `lose` is lost after the request was
    carried out, `vanish` is a connection that ends in mid-request, and `delay` seconds pass before
    each request is looked at.
    """

    def __init__(self, seed: int = 0) -> None:
        self.refuse = self.lose = self.vanish = self.delay = 0.0
        self.faults = 0
        self._random = random.Random(seed)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> S3Server:
        self._thread.start()
        # The servers of a process have one memory.
        urlopen(Request(f"{self.endpoint}/moto-api/reset", method="POST")).close()
        self.client.create_bucket(Bucket=BUCKET)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

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

    def _answer(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self.delay:
            time.sleep(self.delay)
        lot = self._random.random()
        if lot < self.vanish:
            return self._hang_up(environ)
        if lot < self.vanish + self.refuse:
            self.faults += 1
            start_response("503 Slow Down", [("Content-Length", "0"), ("Connection", "close")])
            return [b""]
        answer: Iterable[bytes] = self._app(environ, start_response)
        if lot < self.vanish + self.refuse + self.lose:
            return self._hang_up(environ)
        return answer

    def _hang_up(self, environ: Any) -> Iterable[bytes]:
        self.faults += 1
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionError("told to hang up")
