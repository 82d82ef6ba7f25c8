"""Pages of other sites do nothing here in the name of a browser's user."""

from __future__ import annotations

import pytest

from tests.harness.http_door import HttpDoor, problem_of


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_site_cancels_no_job(door: HttpDoor, headers: dict[str, str]) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    [[job]] = door.rows("CREATE CHANGEFEED FOR t INTO 'null://'")
    answer = door.client.post(
        f"/v1/jobs/{job}/cancel", content=b"x", headers={**headers, "content-type": "text/plain"}
    )
    assert answer.status_code == 403
    assert problem_of(answer)["detail"] == "a page of another site may not do this here"
    item = door.client.get(f"/v1/jobs/{job}").json()["item"]
    assert item["status"] in ("pending", "running")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_what_forms_send_is_not_taken(door: HttpDoor, kind: str) -> None:
    for path in ("/v1/jobs/1/cancel", "/v1/transactions", "/v1/logout", "/v1/sql"):
        answer = door.client.post(path, content=b"{}", headers={"content-type": kind})
        assert problem_of(answer)["status"] == 415, path


def test_value_of_a_raw_key_has_any_type(door: HttpDoor) -> None:
    """curl says that what it puts is of a form. A page of another site may not put it."""
    door.sql("CREATE KEYSPACE ks")
    sent = {"content-type": "application/x-www-form-urlencoded"}
    assert door.client.put("/v1/keyspaces/ks/keys/a", content=b"1", headers=sent).status_code == 200
    assert door.client.get("/v1/keyspaces/ks/keys/a").content == b"1"
    foreign = {**sent, "sec-fetch-site": "cross-site"}
    answer = door.client.put("/v1/keyspaces/ks/keys/a", content=b"2", headers=foreign)
    assert answer.status_code == 403


def test_own_pages_and_programs_may(door: HttpDoor) -> None:
    own = f"http://127.0.0.1:{door.port}"
    for headers in (
        {},
        {"origin": own},
        {"sec-fetch-site": "same-origin", "origin": "https://proxy.example"},
        {"sec-fetch-site": "none"},
    ):
        answer = door.client.post("/v1/sql", json={"sql": "SELECT 1"}, headers=headers)
        assert answer.status_code == 200, headers


def test_reading_is_as_it_was(door: HttpDoor) -> None:
    answer = door.client.get("/healthz", headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
