"""An origin over https, and the worker's key: not for an untrusted certificate, and not for another host."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.git_http import GitHttp, serving_git
from fakes.repositories import Origin, git, make_origin
from fakes.tls_front import Authority

from septet.errors import GitError
from septet.git.engine.remote import Remote

TOKEN = "ghs_top_secret_token"  # noqa: S105 -- of the fake


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = make_origin(tmp_path / "served" / "o", name="app.git")
    origin.push({"README.md": "# Sample\n"})
    git(origin.bare, "config", "http.receivepack", "true")
    return origin


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def server(tmp_path: Path, origin: Origin, authority: Authority) -> Iterator[GitHttp]:
    with serving_git(GitHttp(tmp_path / "served", TOKEN, pair=authority.sign("forge"))) as server:
        yield server


@pytest.fixture
def remote(server: GitHttp, env: dict[str, str], authority: Authority) -> Remote:
    trusting = {**env, "GIT_SSL_CAINFO": str(authority.own.certificate)}
    return Remote(f"{server.url}/o/app.git", trusting, TOKEN)


@pytest.mark.parametrize(
    ("host", "trusts", "what", "remedy"),
    [
        ("127.0.0.1", False, "a certificate that is not trusted here", "http.sslCAInfo"),
        ("localhost", True, "a certificate for another name", "the name that its certificate has"),
    ],
)
def test_a_certificate_that_does_not_fit_gets_no_key(
    remote: Remote,
    server: GitHttp,
    env: dict[str, str],
    tmp_path: Path,
    host: str,
    what: str,
    remedy: str,
    *,
    trusts: bool,
) -> None:
    """A host with an untrusted or wrong certificate gets no request and no key."""
    url = remote.url.replace("127.0.0.1", host)
    with pytest.raises(GitError, match=what) as refused:
        replace(remote, url=url, env=remote.env if trusts else env).refs(bare(tmp_path))
    assert remedy in refused.value.remedy
    assert server.seen == []


@pytest.mark.parametrize("is_tls", [True, False])
def test_an_origin_that_leads_elsewhere_takes_no_key_along(
    remote: Remote, server: GitHttp, authority: Authority, origin: Origin, tmp_path: Path, *, is_tls: bool
) -> None:
    """Another host and plain HTTP get no key from a redirect, and their answers do not count."""
    pair = authority.sign("other") if is_tls else None
    vault = bare(tmp_path)
    with serving_git(GitHttp(tmp_path / "served", TOKEN, is_public=True, pair=pair)) as other:
        server.leads_to = other.url
        for attempt in (
            lambda: remote.refs(vault),
            lambda: remote.fetch(vault, "+refs/heads/*:refs/remotes/origin/*"),
            lambda: remote.push(vault, origin.sha("main"), "refs/heads/work", ""),
        ):
            with pytest.raises(GitError, match=f"leads to {other.url}, which gets no key"):
                attempt()
        assert other.seen == []
        argv = ("git", "-c", f"http.{server.url}/.extraHeader=Authorization: the key", "ls-remote", remote.url)
        subprocess.run(argv, env=dict(remote.env), capture_output=True, check=True)
        assert "the key" in other.seen  # git by itself sends the key to any host that the origin leads to


@pytest.mark.parametrize("leads_to", ["", "/in/a/circle"])
def test_an_origin_may_lead_to_a_new_name_of_a_repository(
    remote: Remote, server: GitHttp, origin: Origin, tmp_path: Path, leads_to: str
) -> None:
    """A redirect on the same host is followed and remembered; a redirect in a circle causes an error."""
    vault = bare(tmp_path)
    server.renamed = {"/o/old.git": f"{server.url}{leads_to or '/o/app.git'}"} | (
        {leads_to: f"{server.url}{leads_to}"} if leads_to else {}
    )
    old = replace(remote, url=f"{server.url}/o/old.git")
    if leads_to:
        with pytest.raises(GitError):
            old.refs(vault)
    else:
        old.fetch(vault, "+refs/heads/*:refs/remotes/origin/*")
        assert old.push(vault, origin.sha("main"), "refs/heads/work", "").is_done
        server.renamed = {}
        assert old.refs(vault).shas["refs/heads/work"] == origin.sha(
            "main"
        )  # the worker remembers the new address


def bare(tmp_path: Path) -> Path:
    folder = tmp_path / "vault.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    return folder
