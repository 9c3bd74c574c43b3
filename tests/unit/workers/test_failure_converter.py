import json
from pathlib import Path

import httpx
import pytest
from pydantic import BaseModel, ValidationError
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes
from temporalio.exceptions import ApplicationError

from septet.errors import ForgeUnavailableError
from workers.failure_converter import FailureConverter
from workers.plugin import SeptetPlugin

PAYLOADS = DataConverter.default.payload_converter


class Wanted(BaseModel):
    """Something that pydantic checks."""

    number: int


def written(error: BaseException) -> Failure:
    """Return an exception as histories have it."""
    kept = Failure()
    FailureConverter().to_failure(error, PAYLOADS, kept)
    return kept


def given(converter: DataConverter) -> DataConverter:
    """Return what the plugin makes of a converter."""
    config = SeptetPlugin().configure_replayer({"data_converter": converter})
    return config["data_converter"]


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    """Return an exception with a traceback, and with a cause."""
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_what_is_raised_on_purpose_says_it_all_itself() -> None:
    """Neither the stack of an HTTP client nor its chained errors go into a history."""
    with pytest.raises(httpx.ConnectError) as refused:
        httpx.Client(trust_env=False).get("http://127.0.0.1:1")
    unavailable = raised(ForgeUnavailableError("GitHub was not reached."), refused.value)
    kept = written(raised(ApplicationError("GitHub was not reached.", type="ForgeUnavailable"), unavailable))
    assert (kept.message, kept.application_failure_info.type) == ("GitHub was not reached.", "ForgeUnavailable")
    assert (kept.stack_trace, kept.HasField("cause")) == ("", False)
    assert kept.ByteSize() < 200


def test_a_defect_keeps_the_frames_that_are_ours() -> None:
    """Who mends it sees where our code failed and what the cause said, and nothing of installed packages."""
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


def test_a_long_message_is_cut_where_its_bytes_end() -> None:
    """What the server keeps of a failure counts in bytes, whatever the language."""
    kept = written(ApplicationError("ü" * 4000))
    assert len(kept.message.encode()) <= 2500
    assert kept.message.startswith("ü" * 100)


def test_the_plugin_gives_it_to_all_and_leaves_another_ones_alone() -> None:
    """A converter that encrypts what failures say goes on to do so."""
    usual = DataConverter.default
    encoding = DataConverter(failure_converter_class=DefaultFailureConverterWithEncodedAttributes)
    assert given(usual).failure_converter_class is FailureConverter
    assert given(encoding).failure_converter_class is DefaultFailureConverterWithEncodedAttributes
