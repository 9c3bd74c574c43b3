"""Addresses of origins: their parts, their refusals, their keys and their credentials."""

from pathlib import Path

import pytest

from septet.contracts.order import WorkOrderInput
from septet.contracts.repository import without_credentials
from septet.errors import InvalidInputError
from septet.git.engine.address import parse_address, with_project

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("repository", "url", "host", "project"),
    [
        ("https://github.com/o/foo.js.git", "https://github.com/o/foo.js.git", "github.com", "o/foo.js"),
        ("https://github.com/o/.github/", "https://github.com/o/.github", "github.com", "o/.github"),
        ("https://GitHub.com:443/o/r/", "https://github.com/o/r", "github.com", "o/r"),
        ("https://ghe.example:8443/o/r.git", "https://ghe.example:8443/o/r.git", "ghe.example:8443", "o/r"),
        ("https://ada:secret@github.com/o/r", "https://github.com/o/r", "github.com", "o/r"),
        ("ssh://git@github.com/o/r.git", "ssh://git@github.com/o/r.git", "github.com", "o/r"),
        ("ssh://git:secret@ghe.example:2222/o/r", "ssh://git@ghe.example:2222/o/r", "ghe.example", "o/r"),
        ("git@github.com:o/r.git", "git@github.com:o/r.git", "github.com", "o/r"),
        ("github.com:o/r", "github.com:o/r", "github.com", "o/r"),
        ("http://127.0.0.1:8080/o/r.git", "http://127.0.0.1:8080/o/r.git", "127.0.0.1:8080", "o/r"),
        ("https://git.example/group/sub/r", "https://git.example/group/sub/r", "git.example", "group/sub/r"),
    ],
)
def test_a_remote_address_is_taken_apart(repository: str, url: str, host: str, project: str) -> None:
    """A remote address in each form of git has a URL without credentials, a host and a project."""
    address = parse_address(repository)

    assert (url, "remote", host, project, None) == (
        address.url,
        address.kind,
        address.host,
        address.project,
        address.path,
    )


@pytest.mark.parametrize(
    ("repository", "path", "project"),
    [
        ("/srv/git/foo.js.git", "/srv/git/foo.js.git", "foo.js"),
        ("/srv/r/.git", "/srv/r", "r"),
        ("/srv/with:colon/r", "/srv/with:colon/r", "r"),
        ("file:///srv/git/r.git", "/srv/git/r.git", "r"),
        ("file://localhost/srv/a%20b/r.git", "/srv/a b/r.git", "r"),
        ("~/code/r", "/home/ada/code/r", "r"),
        ("code/r", "/srv/here/code/r", "r"),
        (".", "/srv/here", "here"),
    ],
)
def test_a_path_is_made_absolute(repository: str, path: str, project: str) -> None:
    """A path and a `file://` address name the same repository; `~` and relative paths become absolute."""
    address = parse_address(repository, home=HOME, cwd=Path("/srv/here"))

    assert ("local", path, Path(path), "", project) == (
        address.kind,
        address.url,
        address.path,
        address.host,
        address.project,
    )


@pytest.mark.parametrize(
    "repository",
    [
        "",
        "-x",
        "--upload-pack=touch /tmp/canary",
        "ext::sh -c touch% /tmp/canary",
        "git://github.com/o/r",
        "http://github.com/o/r",
        "file://server/srv/r",
        "https://github.com/",
        "https://github.com/o/..",
        "https://github.com/o/-r",
        "https://github.com/o/r?ref=main",
        "https://github.com:port/o/r",
        "https://-oProxyCommand=x/o/r",
        "https://[::1/o/r",
        "ssh://-oProxyCommand=x@host/o/r",
        "git@host:-x/r",
        "git@host:o/r\nmore",
        "relative/path",
        "~bob/r",
        "/",
    ],
)
def test_what_is_no_address_is_refused_with_a_remedy(repository: str) -> None:
    """Options, other transports and incomplete addresses are refused, and the error names the field."""
    with pytest.raises(InvalidInputError, match="repository") as refused:
        parse_address(repository)

    assert refused.value.remedy


@pytest.mark.parametrize(
    "repository",
    [
        "https://ada:hunter2@github.com",
        "https://ada:hunt/hunter2@github.com/o/r",
        "ftp://ada:hunter2@github.com/o/r",
        "http://ada:hunter2@github.com/o/r",
        "https://github.com/o/r?token=hunter2",
        "ada:hunter2@github.com:o/r",
        "-hunter2@github.com",
    ],
)
def test_a_refusal_shows_no_password(repository: str) -> None:
    """No refusal shows a possible secret of the address."""
    with pytest.raises(InvalidInputError) as refused:
        parse_address(repository)

    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(refused.value)


def test_the_key_is_a_readable_stable_folder_name() -> None:
    """The key shows the project and ends with eight digits that are different for each repository, also for a name without letters."""
    key = parse_address("https://github.com/o/foo.js").key

    assert key == parse_address("https://github.com/o/foo.js.git/").key
    assert key.startswith("o-foo.js-")
    assert len(key) == len("o-foo.js-") + 8
    assert key != parse_address("https://github.com/o-foo.js/r").key
    assert key != parse_address("https://github.com/o/foo.ts").key
    assert parse_address("/srv/…").key.startswith("repository-")


def test_https_and_ssh_share_a_mirror() -> None:
    """The https, ssh and scp addresses of a repository have one key; another port or host has another key."""
    keys = {
        parse_address(repository).key
        for repository in ("https://github.com/o/r", "ssh://git@github.com/o/r.git", "git@github.com:o/r.git")
    }

    assert len(keys) == 1
    assert parse_address("ssh://git@github.com:2222/o/r").key not in keys
    assert parse_address("https://ghe.example/o/r").key not in keys


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://ada:a-password@github.com/o/r", "https://github.com/o/r"),
        ("HTTPS://ada:p@ss@ghe.example:8443/o/r", "HTTPS://ghe.example:8443/o/r"),
        ("https://github.com/o/r?access_token=abc", "https://github.com/o/r"),
        ("ssh://git:a-password@ghe.example:2222/o/r", "ssh://git@ghe.example:2222/o/r"),
        ("git:a-password@ghe.example:o/r", "git@ghe.example:o/r"),
        ("git@github.com:o/r", "git@github.com:o/r"),
        ("file:///srv/what?/a@b", "file:///srv/what?/a@b"),
        ("/srv/git/a@b:c", "/srv/git/a@b:c"),
    ],
)
def test_a_client_leaves_the_credentials_of_an_address_behind(address: str, shown: str) -> None:
    """An address loses its password, token and query, and keeps an ssh user and a path."""
    assert without_credentials(address) == shown


@pytest.mark.parametrize(
    ("address", "fork"),
    [
        ("https://github.com/o/r", "https://github.com/me/r2"),
        ("git@github.com:o/r.git", "git@github.com:me/r2.git"),
        ("ssh://git@github.com/o/r", "ssh://git@github.com/me/r2"),
        ("https://o.r.example/o/r", "https://o.r.example/me/r2"),
    ],
)
def test_a_fork_has_an_address_of_the_same_form(address: str, fork: str) -> None:
    """A fork's address has the scheme, host, account and ending of the origin, and another name."""
    assert parse_address(address).beside("me/r2").url == fork


@pytest.mark.parametrize("fork", ["me/../../x", "me r", "..", "x@evil.example:o/r", "me/r?x=1", "me/r#x"])
def test_a_fork_cannot_lead_elsewhere(fork: str) -> None:
    """A name that is no repository's name is refused, and so is a fork of a folder."""
    with pytest.raises(InvalidInputError):
        parse_address("https://github.com/o/r").beside(fork)
    with pytest.raises(InvalidInputError, match="no other repositories next to it"):
        parse_address("/srv/r.git").beside("me/r")


@pytest.mark.parametrize(
    ("repository", "project"),
    [
        ("https://github.com/o/foo.js", "o/foo.js"),
        ("/srv/app.git", "app"),
        ("~/app", "app"),
        ("relative/app", None),
    ],
)
def test_a_work_order_has_the_project_of_its_repository(repository: str, project: str | None) -> None:
    """A work order gets its repository's project before it starts, and none for an address that cannot be read."""
    order = WorkOrderInput(repository=repository, title="Totals are wrong", priority=5)
    assert with_project(order) == order.model_copy(update={"project": project})
    own = order.model_copy(update={"project": "till"})
    assert with_project(own) is own
