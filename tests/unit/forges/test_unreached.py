"""The error for an unreachable forge has the system's words and no name of a Python class."""

import httpx
import pytest

from septet.errors import ForgeUnavailableError
from septet.forges.http.api import HttpApi


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ConnectError("[Errno -2] Name or service not known"), "Name or service not known"),
        (httpx.ReadTimeout("The read operation timed out"), "The read operation timed out"),
        (httpx.PoolTimeout(""), "pool timeout"),
    ],
)
def test_the_reason_has_no_number_and_no_name_of_a_class(error: httpx.HTTPError, words: str) -> None:
    """The error has the words without their number, or the kind of error if the exception has no words."""
    api = HttpApi("GitHub", "https://api.example")
    with pytest.raises(ForgeUnavailableError) as failed, api.asking("issue 42 of o/r"):
        raise error
    assert failed.value.message == f"https://api.example could not be reached (issue 42 of o/r): {words}."
