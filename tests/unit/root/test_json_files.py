"""Values in JSON files; a missing or damaged file has no value."""

from pathlib import Path

import msgspec
import pytest

from septet.contracts.wire import Wire
from septet.system.durable import read_model, read_struct


class Model(Wire):
    """A record in a file."""

    number: int


class Struct(msgspec.Struct):
    """A note that is read often."""

    number: int


def test_a_value_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Both libraries read a value, and ignore a field of a newer release."""
    (tmp_path / "value.json").write_text('{"number": 7, "newer": true}')
    assert read_model(tmp_path / "value.json", Model) == Model(number=7)
    assert read_struct(tmp_path / "value.json", Struct) == Struct(number=7)


@pytest.mark.parametrize("content", [b"", b'{"number": 7', b'{"number": "7"}', b"\xff", b"[]"])
def test_a_broken_file_holds_no_value(tmp_path: Path, content: bytes) -> None:
    """A file that is cut short or has another form has no value."""
    (tmp_path / "value.json").write_bytes(content)
    assert read_model(tmp_path / "value.json", Model) is None
    assert read_struct(tmp_path / "value.json", Struct) is None


def test_a_missing_file_holds_no_value(tmp_path: Path) -> None:
    """A missing file or folder has no value."""
    assert read_model(tmp_path / "nowhere" / "value.json", Model) is None
    assert read_struct(tmp_path / "nowhere" / "value.json", Struct) is None


def test_a_model_that_the_disk_does_not_give_is_an_error(tmp_path: Path) -> None:
    """An error of the disk is raised, since the file may exist and its work must not be repeated."""
    with pytest.raises(IsADirectoryError):
        read_model(tmp_path, Model)
