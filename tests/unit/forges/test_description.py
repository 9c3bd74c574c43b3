"""The fakes of forges and their clients, checked against the published descriptions of the forges' APIs."""

from dataclasses import dataclass

import pytest
from fakes.forges.description import DATA, ForgeDescription, description_of

PUBLISHED = ("github", "gitea", "gitlab")


@dataclass(frozen=True)
class Words:
    """The names that a forge's description has for the things that all forges have."""

    pulls: str
    number: str
    page: str
    new: dict[str, object]


GITHUB_WORDS = Words("/repos/o/r/pulls", "number", "page", {"head": "it", "base": "main", "title": "It"})
WORDS = {
    "github": GITHUB_WORDS,
    "gitea": GITHUB_WORDS,
    "gitlab": Words(
        "/projects/o%2Fr/merge_requests",
        "iid",
        "page",
        {"source_branch": "it", "target_branch": "main", "title": "It", "labels": "a,b"},
    ),
}


def deviations(
    description: ForgeDescription,
    method: str,
    path: str,
    *,
    query: dict[str, list[str]] | None = None,
    body: object = None,
    status: int = 200,
    answer: object = (),
) -> str:
    """Return all deviations from the description as one text."""
    return " ".join(description.deviations(method, path, query or {}, body, status, answer))


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_not_published_is_found(name: str) -> None:
    """The check names each operation, parameter, field, status and type that the description does not have."""
    description, words = description_of(name), WORDS[name]

    def listed(answer: object = (), status: int = 200, **query: list[str]) -> str:
        return deviations(description, "GET", words.pulls, query=query, status=status, answer=answer)

    def opened(**other: object) -> str:
        answer = {words.number: 1}
        return deviations(description, "POST", words.pulls, body={**words.new, **other}, status=201, answer=answer)

    assert listed([{words.number: 1}], page=["1"]) == ""
    assert "is not described" in deviations(description, "GET", words.pulls.replace("s", "z"))
    assert "there is no parameter pages" in listed([], pages=["1"])
    assert "the parameter state is never ajar" in listed([], state=["ajar"])
    assert "nummer" in listed([{"nummer": 1}])
    assert "'one' is not of type 'integer'" in listed([{words.number: "one"}])
    assert "418" not in listed(status=418)
    assert "202 is not described" in listed([], status=202)
    assert opened() == ""
    assert "1 is not of type 'string'" in opened(title=1)
    assert "there is no field titel" in opened(titel="It")


@pytest.mark.parametrize(("name", "licence"), [("github", "MIT"), ("gitea", "MIT"), ("gitlab", "CC BY-SA 4.0")])
def test_what_is_published_may_be_passed_on(name: str, licence: str) -> None:
    """Each description and the README beside it name the licence."""
    assert licence in str(description_of(name).about["license"])
    assert licence in (DATA / "README.md").read_text(encoding="utf-8")
