import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fakes.sealed import write_keys
from pydantic import BaseModel, ValidationError
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes
from temporalio.exceptions import ApplicationError

from septet.errors import ForgeUnavailableError
from septet.keys.key_ring import keys_in_file
from workers.connection.data_converter import FailureConverter, pydantic_values
from workers.connection.payload_codec import SealingCodec
from workers.connection.plugin import SeptetPlugin

PAYLOADS = DataConverter.default.payload_converter


class Wanted(BaseModel):
    number: int


def written(error: BaseException) -> Failure:
    kept = Failure()
    FailureConverter().to_failure(error, PAYLOADS, kept)
    return kept


def given(converter: DataConverter) -> DataConverter:
    config = SeptetPlugin().configure_replayer({"data_converter": converter})
    return config["data_converter"]


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_what_is_raised_on_purpose_says_it_all_itself() -> None:
    """A deliberate error stores its message and type, and no stack or chained error."""
    with pytest.raises(httpx.ConnectError) as refused:
        httpx.Client(trust_env=False).get("http://127.0.0.1:1")
    unavailable = raised(ForgeUnavailableError("GitHub was not reached."), refused.value)
    kept = written(raised(ApplicationError("GitHub was not reached.", type="ForgeUnavailable"), unavailable))
    assert (kept.message, kept.application_failure_info.type) == ("GitHub was not reached.", "ForgeUnavailable")
    assert (kept.stack_trace, kept.HasField("cause")) == ("", False)
    assert kept.ByteSize() < 200


def test_a_defect_keeps_the_frames_that_are_ours() -> None:
    """A defect stores the frames of our code and its causes' words, and no frame of installed packages."""
    with pytest.raises(ValidationError) as refused:
        Wanted.model_validate_json(json.dumps({"number": "x" * 100_000}))
    with pytest.raises(httpx.UnsupportedProtocol) as unsupported:
        httpx.get("nowhere", trust_env=False)
    kept = written(raised(KeyError("missing"), raised(RuntimeError("before"), unsupported.value)))
    assert Path(__file__).name in kept.stack_trace
    assert kept.cause.message == "before"
    assert "protocol" in kept.cause.cause.message
    assert "site-packages" not in str(kept)
    assert kept.ByteSize() < 4096
    assert written(refused.value).ByteSize() < 4096


def chain(message: str, length: int) -> Exception:
    error: Exception = RuntimeError(message)
    for _ in range(length - 1):
        error = raised(RuntimeError(message), error)
    return error


@pytest.mark.parametrize(
    "error",
    [
        ApplicationError('{"path": "a\\b", "why": "\\"no\\""}\n' * 200),
        ApplicationError('"' * 5000),
        ApplicationError("the end\x01" * 1000),
        ApplicationError("ü" * 4000, {"remedy": "x" * 2000}),
        chain("a word\n" * 500, 4),
    ],
    ids=["json lines", "quotes", "control characters", "details", "causes"],
)
async def test_a_sealed_failure_is_no_larger_than_the_server_takes(error: Exception, tmp_path: Path) -> None:
    """A sealed failure is smaller than 4096 bytes and keeps the beginning of its message."""
    codec = SealingCodec(keys_in_file(write_keys(tmp_path / "keys", "k1")))
    converter, kept = pydantic_values(codec), Failure()
    await converter.encode_failure(error, kept)
    assert kept.ByteSize() < 4096
    told = await converter.decode_failure(kept)
    assert isinstance(told, ApplicationError)
    assert told.message[:100] == str(error)[:100]


def test_the_plugin_gives_it_to_all_and_leaves_another_ones_alone() -> None:
    """The plugin replaces the usual failure converter, and keeps a converter that encrypts failures."""
    usual = DataConverter.default
    encoding = DataConverter(failure_converter_class=DefaultFailureConverterWithEncodedAttributes)
    assert given(usual).failure_converter_class is FailureConverter
    assert given(encoding).failure_converter_class is DefaultFailureConverterWithEncodedAttributes


def test_the_plugin_keeps_the_codec_of_a_client(tmp_path: Path) -> None:
    """A client that encrypts its payloads keeps its codec, whether Septet has keys or not."""
    own, ours = (SealingCodec(keys_in_file(write_keys(tmp_path / name, name))) for name in ("own", "ours"))
    encrypting = replace(DataConverter.default, payload_codec=own)
    assert given(encrypting).payload_codec is own
    assert pydantic_values(ours, encrypting).payload_codec is own
