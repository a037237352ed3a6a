"""Atomic replacement of files."""

from __future__ import annotations

import os
import stat
import threading
from functools import partial
from pathlib import Path

import pytest

from corollary.core.files import replace_file
from corollary.errors import OperationFailed


def _write(text: str, part: Path) -> None:
    part.write_text(text)


def test_replaces_content_and_creates_parents(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    for text in ("first", "second"):
        replace_file(path, partial(_write, text))
        assert path.read_text() == text
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_keeps_old_content_when_writing_fails(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(part: Path) -> None:
        part.write_text("ne")
        raise error

    with pytest.raises((OperationFailed, KeyboardInterrupt)) as raised:
        replace_file(path, write)
    if isinstance(raised.value, OperationFailed):
        assert raised.value.code == "E401"
        assert raised.value.message == f"cannot write {path}: No space left on device"
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_a_link_keeps_its_target(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "folder" / "link.txt"
    link.parent.mkdir()
    link.symlink_to("../target")
    for text in ("first", "second"):  # the target does not exist at first
        replace_file(link, partial(_write, text))
        assert link.is_symlink()
        assert target.read_text() == text
    assert [*link.parent.iterdir()] == [link]


def test_keeps_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    for mode in (0o600, 0o640, 0o444):
        path.chmod(mode)
        replace_file(path, partial(_write, "new"))
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_writes_to_pipes_and_devices(tmp_path: Path) -> None:
    pipe, texts = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: texts.append(pipe.read_text()))
    reader.start()
    replace_file(pipe, partial(_write, "text"))
    reader.join(60)
    assert texts == ["text"]
    assert pipe.is_fifo()
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    replace_file(null, partial(_write, "text"))
    assert null.is_char_device()


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OperationFailed) as raised:
        replace_file(tmp_path, partial(_write, "text"))
    assert raised.value.code == "E401"
