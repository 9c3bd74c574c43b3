import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet, free_port
from fakes.shared_server import Host
from fakes.waiting import until

from septet.forges.values import pull_request_number

pytestmark = pytest.mark.faces

_PRIVILEGE_SEPARATION: Final = Path("/run/sshd")
"""A folder that the server needs when root starts it; the system otherwise makes it at its own start."""
_SERVER: Final = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
ForceCommand exec sh {folder}/door
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""
_DOOR: Final = """\
# git asks for: git-upload-pack '/o/name'
verb=${{SSH_ORIGINAL_COMMAND%% *}}
name=${{SSH_ORIGINAL_COMMAND#* }}
name=${{name#\\'}}
name=${{name%\\'}}
export PATH='{path}'
case "$verb" in
git-upload-pack | git-receive-pack) exec "$verb" '{root}'/"${{name#/}}" ;;
esac
"""
_CLIENT: Final = """\
Host stranger
    UserKnownHostsFile /dev/null
Host locked-out
    IdentityFile {folder}/other_key
Host forge stranger locked-out
    HostName 127.0.0.1
    Port {port}
Host * !locked-out
    IdentityFile {folder}/key
Host *
    User {user}
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
"""
"""Host names: `forge`, `stranger` without a known host key, and `locked-out` with a key that the server refuses."""


@dataclass(frozen=True)
class SshServer:
    port: int
    user: str
    command: str
    """The ssh command that knows the host key and has the accepted key."""


@contextmanager
def serving_ssh(folder: Path, root: Path) -> Iterator[SshServer]:
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert program is not None, "sshd was not found: apt-get install openssh-server"
    port, user = free_port(), getpass.getuser()
    for name in ("host_key", "key", "other_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    key = (folder / "host_key.pub").read_text(encoding="utf-8")
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}", encoding="utf-8")
    (folder / "door").write_text(_DOOR.format(path=os.environ["PATH"], root=root), encoding="utf-8")
    (folder / "sshd_config").write_text(_SERVER.format(port=port, folder=folder), encoding="utf-8")
    (folder / "config").write_text(_CLIENT.format(port=port, folder=folder, user=user), encoding="utf-8")
    if os.getuid() == 0:
        _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([program, "-D", "-e", "-f", folder / "sshd_config"], stderr=log)
    try:
        until(lambda: server.poll() is not None or _answers(port))
        assert server.poll() is None, (folder / "log").read_text(encoding="utf-8")
        yield SshServer(port, user, f"ssh -F {folder / 'config'}")
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


HOSTS = "127.0.0.1,forge,stranger,locked-out"


@dataclass(frozen=True)
class Forge:
    """A forge for this test alone: `o/foo.js` over ssh, and its API."""

    ssh: SshServer
    github: GitHubFake
    origin: Origin

    @property
    def settings(self) -> dict[str, str]:
        return {**self.github.settings, "SEPTET_GITHUB_HOSTS": HOSTS}


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    folder = tmp_path / "ssh"
    folder.mkdir()
    origin = make_origin(tmp_path / "o", "foo.js.git")
    origin.push({"index.js": "module.exports = 1\n"})
    github = GitHubFake(repositories=tmp_path)
    with serving_ssh(folder, tmp_path) as ssh, serving_forge(github):
        yield Forge(ssh, github, origin)


@pytest.fixture
def person(host: Host, forge: Forge) -> Host:
    """A host whose git configuration names the ssh that knows the forge."""
    home = Path(host.septet.env["HOME"])
    (home / ".gitconfig").write_text(f"[core]\n\tsshCommand = {forge.ssh.command}\n", encoding="utf-8")
    return host


def done(septet: Septet, forge: Forge, repository: str, *more: str) -> dict[str, Any]:
    number = forge.github.add_issue("The export is wrong", "It should be 2.")
    ended = septet("run", "--repo", repository, "--issue", str(number), *more, "--wait", "--json")
    assert ended.code == 0, ended
    task: dict[str, Any] = ended.json["task"]
    assert (task["source"], task["project"], task["issue_number"]) == ("github", "o/foo.js", str(number))
    return task


def becomes_a_pull_request(septet: Septet, forge: Forge, repository: str) -> None:
    task = done(septet, forge, repository)
    pull = max(forge.github.pulls.values(), key=lambda pull: pull.number)
    assert (pull.number, pull.head) == (pull_request_number(task["pr_url"]), task["branch_name"])
    assert forge.origin.sha(task["branch_name"]) == task["commit_sha"] == forge.github.sha(pull)


def test_ssh_urls_and_scp_addresses_are_worked_on(person: Host, forge: Forge) -> None:
    """`ssh://user@host:port/o/name` is fetched and pushed over the person's own ssh, `user@alias:o/name` fetched."""
    with person.worker(**forge.settings):
        becomes_a_pull_request(person.septet, forge, f"ssh://{forge.ssh.user}@127.0.0.1:{forge.ssh.port}/o/foo.js")
        assert done(person.septet, forge, f"{forge.ssh.user}@forge:o/foo.js", "--plan-only")["plan_path"]


def test_refusals_of_ssh_are_named_with_their_remedies(person: Host, forge: Forge) -> None:
    """An unknown host key and a refused key fail a work order at once, without a prompt."""
    told = {}
    with person.worker(**forge.settings):
        for host in ("stranger", "locked-out"):
            ended = person.septet("run", "--repo", f"{host}:o/foo.js", "--title", "T", "--wait", "--json")
            assert ended.code == 1
            told[host] = ended.json["error"]
    assert "host key that is not known here" in told["stranger"]["message"]
    assert "known_hosts" in told["stranger"]["remedy"]
    assert "refused the worker's ssh key" in told["locked-out"]["message"]
    assert "~/.ssh/config" in told["locked-out"]["remedy"]
