"""Where a webhook's receiver may be, and that it stays where it was found."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading

import pytest

from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.sinks import SinkError
from tailrace.changefeed.sinks.delivery import Message, Messages
from tailrace.changefeed.sinks.http.address import INSECURE_HTTP, PRIVATE_ADDRESSES, public
from tailrace.changefeed.sinks.http.client import PinnedClient
from tailrace.changefeed.sinks.http.target import parse_target, shown_uri
from tailrace.changefeed.sinks.webhook.sender import WebhookSender
from tailrace.kvlayer.settings import Settings
from tests.harness.webhook_receiver import WebhookReceiver

NOT_PUBLIC = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1", "ff02::1"),
    *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_nobodys_to_reach(address: str) -> None:
    assert not public(address)


def test_the_systems_authorities_are_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them takes longer than a step of the loop may."""
    readers: list[int] = []
    monkeypatch.setattr(
        ssl.SSLContext, "load_default_certs", lambda _: readers.append(threading.get_ident())
    )
    target = parse_target("webhook-https://hooks.example/x")
    assert readers == []
    asyncio.run(target.tls())
    assert readers and threading.get_ident() not in readers


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_addresses_that_are_anybodys_to_reach(address: str) -> None:
    assert public(address)


def test_the_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means another address later leads nowhere else."""
    asked: list[str] = []

    async def scenario(receiver: WebhookReceiver) -> None:
        loop, port = asyncio.get_running_loop(), int(receiver.address.rpartition(":")[2])
        found = loop.getaddrinfo

        async def getaddrinfo(host: object, *given: object, **named: object) -> object:
            if host != "hooks.example":
                return await found(host, *given, **named)  # type: ignore[arg-type]
            asked.append(str(host))
            address = "127.0.0.1" if len(asked) == 1 else "127.0.0.99"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        settings = Settings()
        for setting in (PRIVATE_ADDRESSES, INSECURE_HTTP):
            settings.set(setting.name, "true")
        target = parse_target(f"webhook-http://hooks.example:{port}/x")
        sender = WebhookSender(target, ChangefeedOptions(), settings)
        await sender.open()
        for number in range(3):
            await sender.send(Messages.of([Message("t", b"[1]", b'{"n":%d}' % number)]))
        await sender.close()
        assert [message["n"] for message in receiver.messages] == [0, 1, 2]
        assert {headers["Host"] for headers in receiver.headers} == {f"hooks.example:{port}"}
        assert asked == ["hooks.example"]

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


SUNDAY = "Sun, 29 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": "Sun, 29 Nov 2026 10:01:30 GMT", "Date": SUNDAY}, 90),
        ({"Retry-After": "Sun, 29 Nov 2026 09:00:00 GMT", "Date": SUNDAY}, 0),
        ({"Retry-After": "Sun, 29 Nov 2026 10:01:30", "Date": SUNDAY}, 0),
        ({"Retry-After": "Sun, 29 Nov 2026 10:01:30 GMT"}, 0),
        ({"Retry-After": "9" * 400}, 3600),
        ({"Retry-After": "soon"}, 0),
        ({"Retry-After": "-5"}, 0),
    ],
)
def test_a_receiver_says_when_to_come_again(headers: dict[str, str], seconds: float) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        settings = Settings()
        for setting in (PRIVATE_ADDRESSES, INSECURE_HTTP):
            settings.set(setting.name, "true")
        target = parse_target(f"webhook-http://{receiver.address}/x")
        sender = WebhookSender(target, ChangefeedOptions(), settings)
        await sender.open()
        with pytest.raises(SinkError, match="429") as raised:
            await sender.send(Messages.of([Message("t", b"[1]", b"{}")]))
        await sender.close()
        assert raised.value.retry_after == seconds

    with WebhookReceiver() as receiver:
        receiver.status, receiver.answer_headers = 429, headers
        asyncio.run(scenario(receiver))


def test_what_is_the_receivers_is_not_shown() -> None:
    text = "webhook-https://u:kanari@[2001:db8::1]:99/p?token=kanari&insecure_tls_skip_verify=true"
    assert "kanari" not in shown_uri(text) + repr(parse_target(text))
    assert shown_uri(text).startswith(
        "webhook-https://u:redacted@[2001:db8::1]:99/p?token=redacted"
    )


def test_no_error_repeats_a_secret_encoded_or_decoded() -> None:
    target = parse_target("webhook-https://app:ka%40na%2Fri@hooks.example/x?token=ka%2Bna%20ri")
    client = PinnedClient(target, Settings(), {}, authorization=target.authorization, seconds=1)
    for told in (target.request_target, target.authorization, "ka+na ri", "app:ka@na/ri"):
        text = str(client.error(f"401 Unauthorized: {told}"))
        assert not any(secret in text for secret in ("ka%2Bna", "ka+na", "ka@na", "YXBwOm")), text
