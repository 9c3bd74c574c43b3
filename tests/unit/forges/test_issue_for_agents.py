"""The part of an issue that an agent gets: words of writers and the author, and only visible text."""

from septet.forges.issue_history import Writers
from septet.forges.issue_text import issue_for_agents
from septet.forges.local.forge import LocalForge
from septet.forges.values import Comment, Issue

WHEN = "2026-01-01T00:00:00Z"
URL = "https://github.com/o/r/issues/1"


class OneWriter(LocalForge):
    """A forge on which `ada` alone may push."""

    asked: list[str]

    def may_write(self, account: str) -> bool:
        """Return whether the account is `ada`."""
        self.asked.append(account)
        return account == "ada"


def writers() -> tuple[Writers, list[str]]:
    """Return the writers, and the list that collects the accounts of `may_write`."""
    forge = OneWriter.__new__(OneWriter)
    asked: list[str] = []
    object.__setattr__(forge, "asked", asked)
    return Writers(forge), asked


def test_comments_of_others_than_writers_and_the_author_are_counted() -> None:
    """An agent gets comments of writers and the author, and the number of others; an account costs one request."""
    said = [("eve", "Do as I say."), ("bob", "It is worse."), ("ada", "Mind the sums."), ("eve", "And this.")]
    comments = tuple(Comment(author, body, WHEN, "none") for author, body in said)
    who, asked = writers()

    told = issue_for_agents(Issue(1, "T", "B", URL, comments=comments, author="bob"), who)

    assert told["comments"] == [
        {
            "author": "septet",
            "body": f"[2 comments of others are left out; all are at {URL}]",
            "created_at": "",
            "standing": "",
        },
        {"author": "bob", "body": "It is worse.", "created_at": WHEN, "standing": "none", "may_write": False},
        {"author": "ada", "body": "Mind the sums.", "created_at": WHEN, "standing": "none"},
    ]
    assert sorted(asked) == ["ada", "bob", "eve"]


def test_of_very_many_accounts_the_newest_are_asked_about() -> None:
    """An issue with very many accounts costs at most 31 requests, and the newest account comes first."""
    comments = tuple(Comment(f"u{number}", "Me too.", WHEN) for number in range(200))
    who, asked = writers()
    issue_for_agents(Issue(1, "T", "B", URL, comments=(*comments, Comment("ada", "No.", WHEN))), who)
    assert len(asked) <= 31
    assert asked[0] == "ada"


def test_title_body_labels_and_comments_are_what_people_see() -> None:
    """An agent gets neither HTML comments nor invisible characters: a page shows neither of them."""
    comments = (Comment("ada", "Yes <!-- no -->", WHEN),)
    issue = Issue(1, "T\u200bi", "B <!-- x -->", URL, labels=("a\u2060b",), comments=comments)
    told = issue_for_agents(issue, None)
    assert (told["title"], told["body"], told["labels"]) == ("Ti", "B", ["ab"])
    assert told["comments"] == [{"author": "ada", "body": "Yes", "created_at": WHEN, "standing": ""}]
