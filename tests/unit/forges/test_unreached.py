"""A forge that is not reached says why in the system's words, and shows nobody Python's."""

import httpx
import pytest

from septet.errors import ForgeUnavailableError
from septet.forges.http.api import HttpApi


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ConnectError("[Errno -2] Name or service not known"), "Name or service not known"),
        (httpx.ConnectError("[Errno 111] Connection refused"), "Connection refused"),
        (httpx.ReadTimeout("The read operation timed out"), "The read operation timed out"),
        (httpx.PoolTimeout(""), "pool timeout"),
    ],
)
def test_the_reason_has_no_number_and_no_name_of_a_class(error: httpx.HTTPError, words: str) -> None:
    """Where there are no words, the kind of error is in plain letters."""
    api = HttpApi("GitHub", "https://api.example")
    with pytest.raises(ForgeUnavailableError) as failed, api.asking("issue 42 of o/r"):
        raise error
    assert failed.value.message == f"https://api.example could not be reached (issue 42 of o/r): {words}."
