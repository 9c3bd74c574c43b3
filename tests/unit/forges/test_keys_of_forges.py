"""The sources of a worker's key for a forge: a token, an App's installation, or a named program's login."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge

from septet.errors import ForgeError, NotFoundError
from septet.forges.choose import forge_for, token_for
from septet.forges.github.app import INSTALLATIONS, GitHubApp, InstallationTokens
from septet.git.engine.address import parse_address
from septet.settings import Settings
from septet.system.masking import hidden_values, mask

KEY = generate_private_key(65537, 2048)
PROGRAM = """#!/bin/sh
echo "$@" >> "$HOME/asked"
case "$*" in *known.example) echo secret-of-a-login;; *) echo "not logged in" >&2; exit 1;; esac
"""


def written(key: RSAPrivateKey, folder: Path) -> Path:
    """Write the private key to a file and return its path."""
    file = folder / "app.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


@pytest.fixture
def fake() -> Iterator[GitHubFake]:
    """Return a GitHub on which an App is installed."""
    with serving_forge(GitHubFake(app_key=KEY.public_key())) as fake:
        assert isinstance(fake, GitHubFake)
        yield fake


def settings_of(tmp_path: Path, **known: Any) -> Settings:
    """Return settings without a token."""
    return Settings.model_validate({"state_dir": tmp_path, "environ": {}} | known)


def test_an_app_serves_api_and_git_with_one_token(fake: GitHubFake, tmp_path: Path) -> None:
    """The installation's one token serves the API and git, and the worker masks the token."""
    fake.add_issue("Title")
    settings = settings_of(
        tmp_path,
        github_app_id="1",
        github_app_key_file=written(KEY, tmp_path),
        github_hosts=(fake.url.removeprefix("http://"),),
        github_api_url=fake.url,
    )
    address = parse_address(f"{fake.url}/o/foo.js.git")
    assert forge_for(address, settings).issue(1).title == "Title"
    token = token_for(address, settings)
    assert [token] == fake.app_tokens
    assert mask(f"it is {token}") == "it is ***"


def test_each_repository_has_a_token_of_its_own(fake: GitHubFake, tmp_path: Path) -> None:
    """A token serves one repository; the error for a repository without the App names the repository."""
    tokens, app = InstallationTokens(), GitHubApp("1", written(KEY, tmp_path))
    assert tokens.token(app, fake.url, "o/foo.js") == tokens.token(app, fake.url, "o/foo.js")
    with pytest.raises(NotFoundError, match="GitHub App 1 for o/other") as refused:
        tokens.token(app, fake.url, "o/other")
    assert "Install the App" in refused.value.remedy


def test_tokens_of_long_ago_are_masked_no_longer(fake: GitHubFake, tmp_path: Path) -> None:
    """The worker masks only recent tokens. A token lasts an hour; a month of masks would slow each line."""
    app = GitHubApp("1", written(KEY, tmp_path))
    for _ in range(10):
        assert mask(InstallationTokens().token(app, fake.url, "o/foo.js")) == "***"
    assert 1 < len(hidden_values().intersection(fake.app_tokens)) < 6


def test_a_renamed_repository_has_its_token(fake: GitHubFake, tmp_path: Path) -> None:
    """A renamed repository's old name leads to its id, and the client requests the token for the id."""
    fake.old_names = ("old/name",)
    app = GitHubApp("1", written(KEY, tmp_path))
    assert InstallationTokens().token(app, fake.url, "old/name") in fake.app_tokens
    assert fake.asked[-1].body == {"repository_ids": [1]}


def test_a_key_of_another_app_is_told(fake: GitHubFake, tmp_path: Path) -> None:
    """A key that GitHub refuses and a file without a key each cause an error with a remedy."""
    app = GitHubApp("1", written(generate_private_key(65537, 2048), tmp_path))
    with pytest.raises(ForgeError, match="401") as refused:
        INSTALLATIONS.token(app, fake.url, "o/foo.js")
    assert "belong together" in refused.value.remedy
    (tmp_path / "app.pem").write_text("no key")
    with pytest.raises(ForgeError, match="cannot be read") as unread:
        INSTALLATIONS.token(replace(app, id="2"), fake.url, "o/foo.js")
    assert "SEPTET_GITHUB_APP_KEY_FILE" in unread.value.remedy


def test_an_app_needs_its_key(tmp_path: Path) -> None:
    """Settings with an App's id and no key are refused."""
    with pytest.raises(ValueError, match="or neither"):
        settings_of(tmp_path, github_app_id="1")


def test_a_login_of_a_program_that_is_not_installed_is_an_error(tmp_path: Path) -> None:
    """The error names the program, and its remedy names the setting."""
    settings = settings_of(tmp_path, forge_logins="gh", environ={"PATH": str(tmp_path)})
    with pytest.raises(ForgeError, match="`gh` could not be started") as missing:
        token_for(parse_address("https://github.com/o/absent"), settings)
    assert "SEPTET_FORGE_LOGINS" in missing.value.remedy


@pytest.mark.parametrize(
    ("program", "hosts", "words"),
    [
        ("gh", "github_hosts", "auth token --hostname known.example"),
        ("glab", "gitlab_hosts", "config get token --host known.example"),
    ],
)
def test_a_login_that_is_named_serves(tmp_path: Path, program: str, hosts: str, words: str) -> None:
    """The worker runs the named program once for each host, and never runs a program that no setting names."""
    (tmp_path / program).write_text(PROGRAM)
    (tmp_path / program).chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    known = {"environ": environ, hosts: ("known.example", "other.example")}
    address = parse_address("https://known.example/o/r")
    assert token_for(address, settings_of(tmp_path, **known)) is None
    settings = settings_of(tmp_path, forge_logins=f"{program}", **known)
    assert token_for(address, settings) == token_for(address, settings) == "secret-of-a-login"
    assert (tmp_path / "asked").read_text().splitlines() == [words]
    assert mask("secret-of-a-login") == "***"
    with pytest.raises(ForgeError, match="no login for other.example") as refused:
        token_for(parse_address("https://other.example/o/r"), settings)
    assert f"{program} auth login" in refused.value.remedy
