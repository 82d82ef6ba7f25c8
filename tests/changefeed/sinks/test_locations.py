"""Where the path of a duckdb:/// URI leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.sinks.locations import MirrorLocations, MirrorTarget


def locations(tmp_path: Path) -> MirrorLocations:
    for name in ("mirrors", "lake", "outside"):
        (tmp_path / name).mkdir()
    return MirrorLocations([tmp_path / "mirrors", tmp_path / "lake"])


def refusal(places: MirrorLocations, uri: str) -> SQLError:
    with pytest.raises(SQLError) as caught:
        places.target(uri)
    return caught.value


def test_relative_path_starts_at_first_root(tmp_path: Path) -> None:
    target = locations(tmp_path).target("duckdb:///eu/a%20b.duckdb?table=t")
    assert target == MirrorTarget(tmp_path / "mirrors/eu/a b.duckdb", "t")


def test_absolute_path_under_any_root(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "m.duckdb"
    assert locations(tmp_path).target(f"DuckDB:///{path}").path == path


@pytest.mark.parametrize("path", ["m.duckdb.wal", "m.duckdb.WAL", "m.duckdb.tmp/x.duckdb"])
def test_a_mirror_is_not_anothers_log(tmp_path: Path, path: str) -> None:
    assert refusal(locations(tmp_path), f"duckdb:///{path}").sqlstate == "22023"


@pytest.mark.parametrize(
    "path", ["x\ny.duckdb", "x\ty.duckdb", "x\r.duckdb", "%ff.duckdb", "x?table=%ff"]
)
def test_a_name_that_would_become_another_is_refused(tmp_path: Path, path: str) -> None:
    assert refusal(locations(tmp_path), f"duckdb:///{path}").sqlstate == "22023"


def test_percent_encoded_characters_are_themselves(tmp_path: Path) -> None:
    target = locations(tmp_path).target("duckdb:///x%0Ay%C3%BC.duckdb")
    assert target.path == tmp_path / "mirrors/x\ny\u00fc.duckdb"


@pytest.mark.parametrize(
    "path", ["/../x.duckdb", "/a/../../x.duckdb", "/%2e%2e/x.duckdb", "//etc/x.duckdb"]
)
def test_path_outside_is_refused(tmp_path: Path, path: str) -> None:
    assert refusal(locations(tmp_path), f"duckdb://{path}").sqlstate == "42501"


def test_root_with_common_prefix_is_another(tmp_path: Path) -> None:
    places = locations(tmp_path)
    assert "outside" in refusal(places, f"duckdb:///{tmp_path}/mirrors2/x.duckdb").message


def test_link_out_of_roots_is_refused(tmp_path: Path) -> None:
    places = locations(tmp_path)
    (tmp_path / "mirrors/out").symlink_to(tmp_path / "outside")
    (tmp_path / "mirrors/file.duckdb").symlink_to(tmp_path / "outside/file.duckdb")
    assert refusal(places, "duckdb:///out/x.duckdb").sqlstate == "42501"
    assert refusal(places, "duckdb:///file.duckdb").sqlstate == "42501"


def test_link_inside_roots_is_the_same_file(tmp_path: Path) -> None:
    places = locations(tmp_path)
    (tmp_path / "mirrors/alias").symlink_to(tmp_path / "lake")
    assert places.target("duckdb:///alias/x.duckdb").path == tmp_path / "lake/x.duckdb"


@pytest.mark.parametrize(
    "uri",
    [
        "duckdb://",
        "duckdb:///",
        "duckdb:///folder/",
        "duckdb://mirror.duckdb",
        "duckdb://[mirror/x.duckdb",
        "duckdb:mirror.duckdb",
        "duckdb:///x.duckdb#part",
        "duckdb:///x%00.duckdb",
        "duckdb:///x.duckdb?table",
        "duckdb:///x.duckdb?table=",
        "duckdb:///x.duckdb?table=a&table=b",
        "duckdb:///.",
    ],
)
def test_bad_uri_says_how_to_write_one(tmp_path: Path, uri: str) -> None:
    error = refusal(locations(tmp_path), uri)
    assert error.sqlstate in ("22023", "42501")
    assert error.hint is not None


def test_a_path_may_be_too_long(tmp_path: Path) -> None:
    """Also one of short names."""
    assert refusal(locations(tmp_path), f"duckdb:///{'a/' * 3_000}x.duckdb").sqlstate == "22023"


def test_unknown_parameter_lists_known(tmp_path: Path) -> None:
    error = refusal(locations(tmp_path), "duckdb:///x.duckdb?tabel=a")
    assert error.hint == "Known parameters: apply, mode, schema, table."


@pytest.mark.parametrize(
    ("query", "hint"),
    [("mode=all", "mirror, log, both"), ("apply=batch", "row, transaction"), ("apply=", "row")],
)
def test_unknown_value_lists_known(tmp_path: Path, query: str, hint: str) -> None:
    assert refusal(locations(tmp_path), f"duckdb:///x.duckdb?{query}").hint is not None
    assert hint in str(refusal(MirrorLocations([tmp_path / "lake"]), f"duckdb:///x?{query}").hint)


def test_bare_path_can_be_read(tmp_path: Path) -> None:
    places = locations(tmp_path)
    assert places.read_target("m.duckdb") == places.target("duckdb:///m.duckdb").path
