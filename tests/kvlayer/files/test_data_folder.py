"""Data folders: one process at a time, one format, and no half-made folder in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.files.data_folder import DataFolder, DataFolderError
from tailrace.kvlayer.files.disk import replace_file


def refusal(path: Path) -> str:
    with pytest.raises(DataFolderError) as caught:
        DataFolder.open(path)
    return str(caught.value)


def test_folder_is_made_where_there_is_none(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path / "a" / "b")
    assert folder.disk.names() == []
    assert folder.engine_path.is_dir()
    assert folder.clock_bounds.load() == ZERO
    folder.close()
    folder.close()


def test_second_opening_is_refused(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    message = refusal(tmp_path)
    assert f"{tmp_path} is in use by process {os.getpid()}" in message
    folder.close()
    DataFolder.open(tmp_path).close()


def test_lock_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from tailrace.kvlayer.files.data_folder import DataFolder\n"
        "DataFolder.open(pathlib.Path(sys.argv[1]))\n"
        "print('opened', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"opened\n"
        assert f"in use by process {holder.pid}" in refusal(tmp_path)
        holder.kill()
        holder.wait()
    DataFolder.open(tmp_path).close()


@pytest.mark.parametrize("name", ["CLOCK", "engine", "log"])
def test_folder_without_a_part_of_its_store_is_refused(tmp_path: Path, name: str) -> None:
    DataFolder.open(tmp_path).close()
    (tmp_path / name).rename(tmp_path.parent / f"{tmp_path.name}.{name}")
    assert f"{tmp_path} is damaged: {name} is missing" in refusal(tmp_path)
    assert not (tmp_path / name).exists()


def test_other_format_is_refused(tmp_path: Path) -> None:
    DataFolder.open(tmp_path).close()
    (tmp_path / "FORMAT").write_text("7\n")
    message = refusal(tmp_path)
    assert "format '7'" in message
    assert "reads formats up to 3" in message
    assert "open it with the version that wrote it" in message


def test_earlier_format_becomes_this_one(tmp_path: Path) -> None:
    DataFolder.open(tmp_path).close()
    (tmp_path / "FORMAT").write_text("1\n")
    (tmp_path / "CLOCK").write_text("1234\n")
    folder = DataFolder.open(tmp_path)
    assert folder.clock_bounds.load() == 1234
    folder.close()
    assert (tmp_path / "FORMAT").read_text() == "3\n", "the earlier version would lose changes"


@pytest.mark.parametrize("made", [["LOCK"], ["LOCK", "log"], ["LOCK", "log", "engine", "CLOCK"]])
def test_half_made_folder_is_made_again(tmp_path: Path, made: list[str]) -> None:
    DataFolder.open(tmp_path).close()
    for name in {"LOCK", "FORMAT", "CLOCK", "log", "engine"} - set(made):
        path = tmp_path / name
        path.rmdir() if path.is_dir() else path.unlink()
    (tmp_path / "FORMAT.new").write_text("")
    folder = DataFolder.open(tmp_path)
    assert folder.clock_bounds.load() == ZERO
    folder.close()
    assert (tmp_path / "FORMAT").read_text() == "3\n"


def test_folder_of_others_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    assert "it holds 'thesis.tex'" in refusal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file is a file: name a folder" in refusal(tmp_path / "file")


def test_clock_bound_survives(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    folder.clock_bounds.save(Timestamp(1234))
    folder.close()
    folder = DataFolder.open(tmp_path)
    assert folder.clock_bounds.load() == 1234
    folder.close()


@pytest.mark.parametrize("damage", [None, b"", b"\xff", b"-5\n"])
def test_lost_clock_bound_is_an_error(tmp_path: Path, damage: bytes | None) -> None:
    folder = DataFolder.open(tmp_path)
    path = tmp_path / "CLOCK"
    path.unlink() if damage is None else path.write_bytes(damage)
    with pytest.raises(DataFolderError, match="timestamps could repeat"):
        folder.clock_bounds.load()
    folder.close()


@pytest.mark.parametrize("digit", range(19))
def test_changed_clock_bound_is_an_error(tmp_path: Path, digit: int) -> None:
    folder = DataFolder.open(tmp_path)
    folder.clock_bounds.save(Timestamp(7_654_321_098_765_432_109))
    path = tmp_path / "CLOCK"
    changed = bytearray(path.read_bytes())
    changed[digit] ^= 1
    path.write_bytes(changed)
    with pytest.raises(DataFolderError, match=f"{path} is damaged"):
        folder.clock_bounds.load()
    folder.close()


def test_replaced_file_is_old_or_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "CLOCK"
    replace_file(path, b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_folder_is_its_owners_alone(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path / "data")
    folder.disk.create("0000000000000001.log", 100).close()
    folder.close()
    modes = {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / "data").rglob("*")}
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert modes == {
        "log": 0o700, "engine": 0o700, "0000000000000001.log": 0o600,
        "LOCK": 0o600, "FORMAT": 0o600, "CLOCK": 0o600,
    }  # fmt: skip


def test_folder_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    DataFolder.open(tmp_path / "data").close()
    for each in (tmp_path / "data", *(tmp_path / "data").iterdir()):
        each.chmod(0o755 if each.is_dir() else 0o644)
    DataFolder.open(tmp_path / "data").close()
    for each in (tmp_path / "data", *(tmp_path / "data").iterdir()):
        assert each.stat().st_mode & 0o077 == 0, each
