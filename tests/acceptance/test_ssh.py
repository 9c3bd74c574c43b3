from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet
from fakes.ssh_server import SshServer, serving_ssh

from septet.forges.values import pull_request_number

pytestmark = pytest.mark.faces

HOSTS = "127.0.0.1,forge,stranger,locked-out"


@dataclass(frozen=True)
class Forge:
    """A forge for this test alone: `o/foo.js` over ssh, and its API."""

    ssh: SshServer
    github: GitHubFake
    origin: Origin

    @property
    def settings(self) -> dict[str, str]:
        """The worker's settings for the forge."""
        return {**self.github.settings, "SEPTET_GITHUB_HOSTS": HOSTS}


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    """A forge with one repository; its ssh takes one key."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    origin = make_origin(tmp_path / "o", "foo.js.git")
    origin.push({"index.js": "module.exports = 1\n"})
    github = GitHubFake(repositories=tmp_path)
    with serving_ssh(folder, tmp_path) as ssh, serving_forge(github):
        yield Forge(ssh, github, origin)


@pytest.fixture
def person(septet: Septet, forge: Forge) -> Septet:
    """A machine whose git configuration names the ssh that knows the forge."""
    home = Path(septet.env["HOME"])
    (home / ".gitconfig").write_text(f"[core]\n\tsshCommand = {forge.ssh.command}\n", encoding="utf-8")
    return septet


def becomes_a_pull_request(septet: Septet, forge: Forge, repository: str) -> None:
    """Check that an issue of the repository becomes a branch and a pull request on the forge."""
    number = forge.github.add_issue("The export is wrong", "It should be 2.")
    ended = septet("run", "--repo", repository, "--issue", str(number), "--wait", "--json")
    assert ended.code == 0, ended
    task = ended.json["task"]
    pull = max(forge.github.pulls.values(), key=lambda pull: pull.number)
    assert (task["source"], task["project"], task["issue_number"]) == ("github", "o/foo.js", str(number))
    assert (pull.number, pull.head) == (pull_request_number(task["pr_url"]), task["branch_name"])
    assert forge.origin.sha(task["branch_name"]) == task["commit_sha"] == forge.github.sha(pull)


def test_ssh_urls_and_scp_addresses_become_pull_requests(person: Septet, forge: Forge) -> None:
    """`ssh://user@host:port/o/name` and `user@alias:o/name` are fetched and pushed over the person's own ssh."""
    with person.up(**forge.settings):
        becomes_a_pull_request(person, forge, f"ssh://{forge.ssh.user}@127.0.0.1:{forge.ssh.port}/o/foo.js")
        becomes_a_pull_request(person, forge, f"{forge.ssh.user}@forge:o/foo.js")
    assert len(forge.github.pulls) == 2


@pytest.mark.release
def test_ssh_of_the_environment_is_taken(septet: Septet, forge: Forge) -> None:
    """`GIT_SSH_COMMAND` sets the worker's ssh; its settings may hold the host's alias."""
    with septet.up(**forge.settings, GIT_SSH_COMMAND=forge.ssh.command):
        becomes_a_pull_request(septet, forge, "ssh://forge/o/foo.js")


def test_refusals_of_ssh_are_named_with_their_remedies(person: Septet, forge: Forge) -> None:
    """An unknown host key and a refused key fail a work order at once, without a prompt."""
    told = {}
    with person.up(**forge.settings):
        for host in ("stranger", "locked-out"):
            ended = person("run", "--repo", f"{host}:o/foo.js", "--title", "T", "--wait", "--json")
            assert ended.code == 1
            told[host] = ended.json["error"]
    assert "host key that is not known here" in told["stranger"]["message"]
    assert "known_hosts" in told["stranger"]["remedy"]
    assert "refused the worker's ssh key" in told["locked-out"]["message"]
    assert "~/.ssh/config" in told["locked-out"]["remedy"]
