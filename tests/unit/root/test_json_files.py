"""What lies in files as JSON, read as a value of ours; what is missing or broken is no value."""

from pathlib import Path

import msgspec
import pytest

from septet.contracts.wire import Wire
from septet.system.durable import read_model, read_struct


class Model(Wire):
    """As records in files are."""

    number: int


class Struct(msgspec.Struct):
    """As notes that are read often are."""

    number: int


def test_a_value_is_read_as_it_was_written(tmp_path: Path) -> None:
    """By either library, and with a field that a newer release has added."""
    (tmp_path / "value.json").write_text('{"number": 7, "newer": true}')
    assert read_model(tmp_path / "value.json", Model) == Model(number=7)
    assert read_struct(tmp_path / "value.json", Struct) == Struct(number=7)


@pytest.mark.parametrize("content", [b"", b'{"number": 7', b'{"number": "7"}', b"\xff", b"[]"])
def test_a_broken_file_holds_no_value(tmp_path: Path, content: bytes) -> None:
    """A full disk cut it short, or somebody else wrote it."""
    (tmp_path / "value.json").write_bytes(content)
    assert read_model(tmp_path / "value.json", Model) is None
    assert read_struct(tmp_path / "value.json", Struct) is None


def test_a_missing_file_holds_no_value(tmp_path: Path) -> None:
    """Nor does one whose folder is missing."""
    assert read_model(tmp_path / "nowhere" / "value.json", Model) is None
    assert read_struct(tmp_path / "nowhere" / "value.json", Struct) is None


def test_a_model_that_the_disk_does_not_give_is_an_error(tmp_path: Path) -> None:
    """It may be there: who took it for missing would do again what was done."""
    with pytest.raises(IsADirectoryError):
        read_model(tmp_path, Model)
