"""Rules of every forge: bounds on untrusted text, and the choice of a forge."""

from dataclasses import replace
from pathlib import Path

import pytest

from septet.errors import ForgeError, InvalidInputError
from septet.forges.choose import forge_for, forge_name, token_for
from septet.forges.forge import Forge
from septet.forges.gitea.forge import GiteaForge, gitea_api
from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.gitlab.forge import GitLabForge, gitlab_api
from septet.forges.issue_text import ISSUE_LIMIT_BYTES, bounded_issue
from septet.forges.limits import BODY_LIMIT, TITLE_LIMIT
from septet.forges.local.forge import LocalForge
from septet.forges.values import Comment, Issue, NewPullRequest
from septet.git.engine.address import parse_address
from septet.settings import Settings
from septet.system.masking import MASK, hide, reveal

URL = "https://github.com/o/r/issues/1"


def size(issue: Issue) -> int:
    """Return the bytes of an issue's body and comments."""
    return len((issue.body + "".join(comment.body for comment in issue.comments)).encode())


def test_a_large_body_is_cut_with_a_note() -> None:
    """A body over the limit is cut between characters, and a note names the address of the whole text."""
    issue = bounded_issue(Issue(1, "T", "ä" * ISSUE_LIMIT_BYTES, URL, comments=(Comment("ada", "first"),)))

    assert ISSUE_LIMIT_BYTES - 4 <= len(issue.body.encode()) <= ISSUE_LIMIT_BYTES
    assert f"{2 * ISSUE_LIMIT_BYTES} bytes, cut here" in issue.body
    assert URL in issue.body
    assert "1 older comments are left out" in issue.comments[0].body


def test_the_newest_comments_are_kept() -> None:
    """An issue with too many comments keeps the newest comments, and a note replaces the older comments."""
    comments = tuple(Comment("ada", f"{number} " + "x" * 10_000) for number in range(100))
    issue = bounded_issue(Issue(1, "T", "body", URL, comments=comments))

    note, *kept = issue.comments
    assert comments[-len(kept) :] == tuple(kept)
    assert f"{100 - len(kept)} older comments are left out" in note.body
    assert size(issue) <= ISSUE_LIMIT_BYTES + len(note.body)
    assert 20 < len(kept) < 100


def test_a_title_is_one_line_within_bounds() -> None:
    """A title becomes one line of limited length."""
    assert bounded_issue(Issue(1, " a\n b ", "", URL)).title == "a b"
    assert len(bounded_issue(Issue(1, "x" * 1000, "", URL)).title) == TITLE_LIMIT


def test_a_new_pull_request_is_bounded_and_marked() -> None:
    """Title and body keep GitHub's limits, and an invisible mark in the body names the work order."""
    new = NewPullRequest("h", "b", "a\nb " * 200, "x" * 100_000, "wo-42")

    assert len(new.bounded_title) <= TITLE_LIMIT
    assert "\n" not in new.bounded_title
    assert new.marked_body.endswith("[cut here]\n\n<!-- septet: wo-42 -->\n")
    assert len(new.marked_body) < BODY_LIMIT + 100
    assert NewPullRequest("h", "b", "t\x1b\u202e", "", "wo-42").bounded_title == "t"
    assert (
        NewPullRequest("h", "b", "t", "bo\x07dy\r\n\n", "wo-42").marked_body == "body\n\n<!-- septet: wo-42 -->\n"
    )


def test_no_key_comes_together_where_controls_are_taken_out() -> None:
    """A key that a control character splits is masked: the removal of the character would restore the key."""
    hide(["a-key-of-the-worker-7"])
    new = NewPullRequest("h", "b", "a-key-of\x00-the-worker-7", "a-key-of-the\x1b-worker-7", "wo-42")
    assert (new.bounded_title, new.marked_body.partition("\n")[0]) == (MASK, MASK)
    reveal(["a-key-of-the-worker-7"])


def test_a_body_takes_in_another_work_order_once_and_no_more_than_fits() -> None:
    """A body takes in another work order's title, text and mark once; a full body causes an error."""
    first, second = NewPullRequest("h", "b", "A", "One.", "wo-1"), NewPullRequest("h", "b", "B", "Two.", "wo-2")
    both = second.added_to(first.marked_body)
    assert both == "One.\n\n<!-- septet: wo-1 -->\n\n## B\n\nTwo.\n\n<!-- septet: wo-2 -->\n"
    assert second.added_to(both) == first.added_to(both) == both
    with pytest.raises(ForgeError, match="is full"):
        second.added_to("x" * 64_990)


def settings(tmp_path: Path, **values: object) -> Settings:
    """Return settings from the given values and a small environment."""
    return Settings(state_dir=tmp_path, environ={"PATH": "/usr/bin"}, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("repository", "forge"),
    [
        ("https://github.com/o/foo.js", GitHubForge("o/foo.js", github_api("https://api.github.com", "secret"))),
        ("ssh://git@ghe.example:2222/o/r", GitHubForge("o/r", github_api("https://ghe.example/api/v3", "secret"))),
        ("https://gitlab.com/group/sub/r", GitLabForge("group/sub/r", gitlab_api("https://gitlab.com/api/v4"))),
        ("git@git.example:group/r.git", GitLabForge("group/r", gitlab_api("https://git.example/api/v4"))),
        ("https://codeberg.org/o/r", GiteaForge("o/r", gitea_api("https://codeberg.org/api/v1"))),
        ("http://127.0.0.1:3000/o/r", GiteaForge("o/r", gitea_api("http://127.0.0.1:3000/api/v1"))),
        ("/srv/r.git", LocalForge(Path("/srv/r.git"), {})),
    ],
)
def test_a_host_leads_to_its_forge(tmp_path: Path, repository: str, forge: Forge) -> None:
    """The settings name each host's API, and each API gets its own token; a folder keeps its own issues."""
    known = settings(
        tmp_path,
        github_hosts=("github.com", "ghe.example"),
        github_token="secret",
        gitlab_hosts=("gitlab.com", "git.example"),
        gitea_hosts=("codeberg.org", "127.0.0.1:3000"),
    )
    found = forge_for(parse_address(repository), known)
    if isinstance(forge, LocalForge):
        forge = replace(forge, env=known.git_env)
    assert (found, found.name) == (forge, forge.name)
    assert "secret" not in repr(found)


def test_a_key_goes_to_its_own_forge_alone(tmp_path: Path) -> None:
    """GitHub's token reaches neither GitLab nor a host that no setting names."""
    known = settings(tmp_path, github_token="key-1", gitlab_token="key-2")

    tokens = [
        token_for(parse_address(each), known)
        for each in (
            "https://github.com/o/r",
            "https://gitlab.com/o/r",
            "https://codeberg.org/o/r",
            "https://x.example/o/r",
            "/srv/r",
        )
    ]

    assert tokens == ["key-1", "key-2", None, None, None]
    assert "key-2" not in repr(forge_for(parse_address("https://gitlab.com/o/r"), known))


def test_a_host_without_a_forge_is_refused(tmp_path: Path) -> None:
    """A host that no setting names is refused, and the remedy names the setting."""
    with pytest.raises(InvalidInputError, match=r"git\.example") as refused:
        forge_name(parse_address("https://git.example/o/r"), settings(tmp_path))

    assert "SEPTET_GITHUB_HOSTS" in refused.value.remedy


@pytest.mark.parametrize("repository", ["https://github.com/o", "https://github.com/o/r/tree/main"])
def test_a_page_of_github_is_no_repository(tmp_path: Path, repository: str) -> None:
    """An address on GitHub with more or less than owner and name is refused as a repository."""
    with pytest.raises(InvalidInputError, match="not a GitHub repository") as refused:
        forge_name(parse_address(repository), settings(tmp_path))

    assert "owner/name" in refused.value.remedy
