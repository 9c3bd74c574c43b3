"""A forge's ssh on loopback: OpenSSH's own server, which gives one key access to the repositories of a folder."""

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fakes.septet_command import free_port
from fakes.waiting import until

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
