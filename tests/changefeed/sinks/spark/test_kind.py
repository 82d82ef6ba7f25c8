"""What a `spark+parquet` URI may be, and what must be here for it. No Java is started."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.sinks.protocol import FeedIdentity, SinkProgress, SinkRefused
from tailrace.changefeed.sinks.spark import LakeLocation, LakeServer, SparkKind
from tailrace.changefeed.sinks.spark.application import spark_environment
from tailrace.changefeed.sinks.spark.java import java_version, why_no_spark
from tailrace.changefeed.sinks.spark.lake_record import LakeRecord
from tailrace.changefeed.sinks.spark.masters import MASTERS, check_master
from tailrace.changefeed.sinks.worker import WorkerFeed
from tailrace.changefeed.sinks.worker_tokens import Worker, WorkerTokens
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.process.offload import Offload, ThreadOffload
from tailrace.kvlayer.settings import SettingError, Settings
from tests.harness.java import fake_java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "java", 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(home))


def kind_of(root: Path, offload: Offload, url: str | None, **settings: str) -> SparkKind:
    server = None if url is None else LakeServer(url)
    return SparkKind([root], offload, server, WorkerTokens(lambda: "token"), Settings(settings))


def refusal_of(root: Path, uri: str, *, url: str | None = "http://127.0.0.1:1") -> Exception:
    offload = ThreadOffload()
    try:
        kind = kind_of(root, offload, url)
        with pytest.raises((SQLError, SinkRefused)) as caught:
            asyncio.run(kind.validate(uri, [], store_id="s"))
        return caught.value
    finally:
        offload.close()


def state_of(error: Exception) -> str:
    assert isinstance(error, SQLError), error
    return error.sqlstate


def test_location_is_read(tmp_path: Path) -> None:
    found = LakeLocation.read("spark+parquet:///a%20b?master=spark://host:7077", [tmp_path])
    assert (found.path, found.format) == (tmp_path / "a b", "parquet")
    assert found.master == "spark://host:7077"
    assert LakeLocation.read("spark+parquet:///x", [tmp_path]).master == "local[2]"
    absolute = LakeLocation.read(f"spark+parquet:///{tmp_path}/deep/lake", [tmp_path])
    assert absolute.path == tmp_path / "deep" / "lake"


@pytest.mark.parametrize(
    ("uri", "state", "says"),
    [
        ("spark+parquet://host/x", "22023", "three slashes"),
        ("spark+parquet:///x?master=yarn", "22023", "'yarn' is none"),
        ("spark+parquet:///x?mister=local", "22023", "'mister'"),
        ("spark+parquet:////etc/lake", "42501", "/etc/lake"),
        ("spark+parquet:///../lake", "42501", "lake"),
    ],
)
def test_wrong_locations_are_named(tmp_path: Path, uri: str, state: str, says: str) -> None:
    with pytest.raises(SQLError) as caught:
        LakeLocation.read(uri, [tmp_path])
    assert (caught.value.sqlstate, says in str(caught.value)) == (state, True), caught.value


def test_file_is_no_lake(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(SQLError, match="is a file"):
        LakeLocation.read("spark+parquet:///f", [tmp_path])


def test_folder_that_cannot_be_made_is_refused(java: None) -> None:
    error = refusal_of(Path("/proc"), "spark+parquet:///lake")
    assert (state_of(error), "/proc/lake cannot be made" in str(error)) == ("58030", True)


def test_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    error = refusal_of(tmp_path, "spark+parquet:///lake")
    assert (state_of(error), "Java is not installed" in str(error)) == ("58030", True)
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("says", "version"),
    [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2" 2019', 11)],
)
def test_old_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "java", says)))
    why = why_no_spark()
    assert why is not None
    assert f"is Java {version}: Spark needs Java 17" in why
    assert why in str(refusal_of(tmp_path, "spark+parquet:///lake"))


@pytest.mark.parametrize(
    ("says", "version"),
    [('openjdk version "17" 2021', 17), ('openjdk version "22-ea" x', 22), ("what?", None)],
)
def test_versions_of_java_are_read(tmp_path: Path, says: str, version: int | None) -> None:
    assert java_version(str(fake_java(tmp_path / "j", says) / "bin" / "java")) == version


def test_new_java_will_do(java: None) -> None:
    assert why_no_spark() is None


def test_node_without_a_server_refuses_lakes(java: None, tmp_path: Path) -> None:
    error = refusal_of(tmp_path, "spark+parquet:///lake", url=None)
    assert "tailrace serve" in str(error)


@pytest.mark.parametrize("held", [False, True])
def test_lake_of_another_past_is_refused(tmp_path: Path, held: bool) -> None:
    """Its checkpoint would go on from a timestamp, whatever history that is of."""
    offload = ThreadOffload()
    seen = StorePosition(incarnation="lost", index=12)
    now = StorePosition(incarnation="present", index=7)

    async def holds(position: StorePosition) -> bool:
        assert position == seen
        return held

    async def report(progress: SinkProgress, rows: int) -> None: ...

    async def scenario() -> StorePosition | None:
        record = LakeRecord(tmp_path / "lake" / "_checkpoint_7.position", offload.lane("test"))
        await record.write(seen)
        kind = kind_of(tmp_path, offload, None)
        feed = WorkerFeed(
            identity=FeedIdentity(store_id="s", job_id=7, epoch=1),
            uri="spark+parquet:///lake",
            table_id=104,
            name="t",
            span=table_span(104),
            user="ada",
            start_at=Timestamp(1),
            resolved=Timestamp(1),
            options=ChangefeedOptions(),
            position=lambda: now,
            holds=holds,
            report=report,
        )
        # Without a server no application is started.
        with pytest.raises(SinkRefused, match="tailrace serve" if held else "from a past that"):
            await kind.run(feed)
        return await record.read()

    try:
        assert asyncio.run(scenario()) == (now if held else seen)
    finally:
        offload.close()


def test_masters_are_those_of_the_list(java: None, tmp_path: Path) -> None:
    """The server connects to the master, and hands its workers a token."""
    told = refusal_of(tmp_path, "spark+parquet:///lake?master=spark://attacker:7077")
    assert isinstance(told, SQLError)
    assert (told.sqlstate, told.detail) == (
        "42501",
        "The cluster setting changefeed.lake.masters has local.",
    )
    check_master("spark://one:7077", "local, spark://one:7077")
    check_master("local[*]", "local, spark://one:7077")
    with pytest.raises(SQLError, match="master 'local'"):
        check_master("local", "spark://one:7077")
    with pytest.raises(SettingError, match="'yarn' is no master"):
        Settings({MASTERS.name: "local, yarn"})
    assert Settings({MASTERS.name: " local,spark://a:1 "}).get(MASTERS) == "local, spark://a:1"


def test_an_applications_environment_holds_nothing_of_the_servers() -> None:
    files = {"PATH": "/bin", "HOME": "/h"}
    own = {**files, "TAILRACE_ROOT_PASSWORD": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    assert spark_environment(own) == {**files, "PYSPARK_PYTHON": sys.executable}
    told = {**files, "PYSPARK_PYTHON": "/cluster/python"}
    assert spark_environment({**own, **told}) == told


def test_a_workers_token_is_worth_something_while_it_runs() -> None:
    drawn = iter(["one", "two"])
    tokens, ada = WorkerTokens(lambda: next(drawn)), Worker("ada", 104)
    with tokens.lent(ada) as token:
        assert (token, tokens.find("one"), tokens.find("two")) == ("one", ada, None)
    assert tokens.find("one") is None
