"""The fakes of forges, and what asks them, are held against what the forges have published of their APIs."""

import pytest
from fakes.forges.description import description_of

PULLS = "/repos/o/r/pulls"


@pytest.mark.parametrize("name", ["github", "gitea"])
def test_what_is_not_published_is_found(name: str) -> None:
    """An unknown operation, parameter, field of an answer and status, and a body or field of another type, are named."""
    description = description_of(name)

    def told(
        method: str, path: str, query: str = "", body: object = None, status: int = 200, answer: object = ()
    ) -> str:
        asked = {query: ["1"]} if query else {}
        return " ".join(description.deviations(method, path, asked, body, status, answer))

    assert told("GET", PULLS, "page", None, 200, [{"number": 1}]) == ""
    assert "is not described" in told("GET", "/repos/o/r/pears")
    assert "there is no parameter pages" in told("GET", PULLS, "pages", None, 200, [])
    assert "nummer" in told("GET", PULLS, answer=[{"nummer": 1}])
    assert "'one' is not of type 'integer'" in told("GET", PULLS, answer=[{"number": "one"}])
    assert "418" not in told("GET", PULLS, status=418)
    assert "202 is not described" in told("GET", PULLS, status=202, answer=[])
    body = {"head": 1, "base": "main", "title": "It"}
    assert "1 is not of type 'string'" in told("POST", PULLS, body=body, status=201, answer={"number": 1})


@pytest.mark.parametrize("name", ["github", "gitea"])
def test_what_is_published_may_be_passed_on(name: str) -> None:
    """Both descriptions stand under the MIT licence."""
    assert "MIT" in str(description_of(name).about["license"])
