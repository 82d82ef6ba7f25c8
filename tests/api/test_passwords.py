"""Passwords at the HTTP door: how long they may be, where they are compared, how often guessed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tailrace.api import passwords
from tailrace.api.passwords import Guesses
from tailrace.catalog.rights.users import PASSWORD_BYTES_MAX, make_verifier
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.process.offload import ThreadOffload
from tests.harness.http_door import HttpDoor, problem_of


@pytest.fixture
def secure() -> Iterator[HttpDoor]:
    with HttpDoor(trust=False) as door:
        session = door.node.session()
        door.run(session.execute("CREATE USER ada PASSWORD 'right'; CREATE USER eve PASSWORD 'x'"))
        door.run(session.close())
        yield door


def login(door: HttpDoor, user: str, password: str) -> int:
    return door.post("/v1/login", {"user": user, "password": password}).status_code


def test_long_login_bodies_are_refused_unread(secure: HttpDoor) -> None:
    answer = secure.post("/v1/login", {"user": "ada", "password": "x" * 1_000_000})
    assert problem_of(answer)["sqlstate"] == "54000"
    assert answer.status_code == 413


def test_long_passwords_are_not_computed(secure: HttpDoor) -> None:
    begun = time.process_time()
    assert login(secure, "ada", "x" * 7_000) == 401
    assert secure.client.get("/v1/jobs", auth=("ada", "ä" * 20_000)).status_code == 401
    assert time.process_time() - begun < 1.0


def test_a_password_that_is_too_long_is_not_set() -> None:
    random = Random(1)
    make_verifier("x" * PASSWORD_BYTES_MAX, random)
    with pytest.raises(SQLError, match="at most 1024 bytes"):
        make_verifier("x" * (PASSWORD_BYTES_MAX + 1), random)


def test_passwords_are_compared_beside_the_loop(
    secure: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def compared(password: str, verifier: object) -> bool:
        threads.append(threading.current_thread().name)
        return False

    monkeypatch.setattr(passwords, "password_matches", compared)
    assert login(secure, "ada", "right") == 401
    assert threads == ["tailrace-passwords"]


def test_guessing_is_slowed(secure: HttpDoor) -> None:
    for _ in range(passwords.USER_FAILURES_FREE + 1):
        assert login(secure, "ada", "wrong") == 401
    answer = secure.post("/v1/login", {"user": "ada", "password": "right"})
    assert answer.status_code == 429
    assert "Try again in 1 s." in problem_of(answer)["hint"]
    assert secure.client.get("/v1/jobs", auth=("ada", "right")).status_code == 429
    assert login(secure, "eve", "x") == 200, "others from the same address come in"
    assert secure.node.store.metrics.get("authentication_slowed_total") == 2
    assert secure.node.store.metrics.get("authentication_failures_total") == 6


def test_guesses_sent_at_once_are_counted_one_by_one(secure: HttpDoor) -> None:
    with ThreadPoolExecutor(30) as pool:
        statuses = list(pool.map(lambda number: login(secure, "ada", f"w{number}"), range(30)))
    assert statuses.count(401) == passwords.USER_FAILURES_FREE + 1
    assert statuses.count(429) == 30 - statuses.count(401)


def guesses() -> tuple[Guesses, list[float]]:
    now = [1000.0]
    return Guesses(Metrics(), lambda: now[0]), now


def refused(counted: Guesses, user: str, address: str) -> bool:
    try:
        counted.check(user, address)
    except SQLError as error:
        assert error.sqlstate == "53300"
        return True
    return False


def test_each_failure_doubles_the_wait() -> None:
    counted, now = guesses()
    for expected in (0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60):
        counted.failed("ada", "1.2.3.4")
        assert refused(counted, "ada", "1.2.3.4") is (expected > 0)
        now[0] += expected
        assert not refused(counted, "ada", "1.2.3.4")


def test_a_user_is_not_locked_out_from_elsewhere() -> None:
    counted, _ = guesses()
    for _ in range(20):
        counted.failed("ada", "6.6.6.6")
    assert refused(counted, "ada", "6.6.6.6")
    assert not refused(counted, "ada", "1.2.3.4")


def test_one_password_tried_on_many_users_is_slowed() -> None:
    counted, _ = guesses()
    for number in range(passwords.ADDRESS_FAILURES_FREE + 1):
        counted.failed(f"u{number}", "6.6.6.6")
    assert refused(counted, "another", "6.6.6.6")
    assert not refused(counted, "another", "1.2.3.4")


def test_what_is_known_of_guesses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "REMEMBERED_MAX", 10)
    counted, _ = guesses()
    for number in range(100):
        counted.failed("ada", f"1.2.3.{number}")
    assert len(counted._failures) == 10


def test_failures_are_forgotten_in_time() -> None:
    counted, now = guesses()
    for _ in range(20):
        counted.failed("ada", "1.2.3.4")
    now[0] += passwords.FORGOTTEN_SECONDS + 1
    counted.failed("ada", "1.2.3.4")
    assert not refused(counted, "ada", "1.2.3.4")


def test_who_waits_to_be_compared_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "WAITING_MAX", 0)

    async def work() -> None:
        counted, _ = guesses()
        offload = ThreadOffload()
        compared = passwords.Passwords(offload, counted)
        with pytest.raises(SQLError, match="too many passwords"):
            await compared.match("x", make_verifier("x", Random(1)), user="ada", address="a")
        offload.close()

    asyncio.run(work())
