"""The fakes of forges and their clients, checked against the published descriptions of the forges' APIs."""

import pytest
from fakes.forges.description import DATA, description_of


@pytest.mark.parametrize(
    ("name", "pulls", "number"),
    [
        ("github", "/repos/o/r/pulls", "number"),
        ("gitea", "/repos/o/r/pulls", "number"),
        ("gitlab", "/projects/o%2Fr/merge_requests", "iid"),
    ],
)
def test_what_is_not_published_is_found(name: str, pulls: str, number: str) -> None:
    """The check names each parameter, field, status and type that the description does not have."""
    description = description_of(name)

    def listed(answer: object = (), status: int = 200, **query: list[str]) -> str:
        return " ".join(description.deviations("GET", pulls, query, None, status, answer))

    assert listed([{number: 1}], page=["1"]) == ""
    assert "there is no parameter pages" in listed(pages=["1"])
    assert "the parameter state is never ajar" in listed(state=["ajar"])
    assert "nummer" in listed([{"nummer": 1}])
    assert "'one' is not of type 'integer'" in listed([{number: "one"}])
    assert "202 is not described" in listed(status=202)
    assert "no field titel" in " ".join(
        description.deviations("POST", pulls, {}, {"titel": "It"}, 201, {number: 1})
    )


@pytest.mark.parametrize(("name", "licence"), [("github", "MIT"), ("gitea", "MIT"), ("gitlab", "CC BY-SA 4.0")])
def test_what_is_published_may_be_passed_on(name: str, licence: str) -> None:
    """Each description and the README beside it name the licence."""
    assert licence in str(description_of(name).about["license"])
    assert licence in (DATA / "README.md").read_text(encoding="utf-8")
