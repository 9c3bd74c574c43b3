"""The real pip and the real npm in a guest reach the hosts that the settings name, by the proxy alone."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.guest_paths import guest_paths

from septet.agents.guest.description import World
from septet.agents.guest.network import parse_way_out
from septet.agents.guest.paths import parse_named_paths
from septet.agents.proxy.network_log import NETWORK_LOG
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.guest_run import GuestCommand, GuestEnd, GuestRunner
from septet.agents.sandbox.sandbox import find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.system.durable import lock, open_lock

pytestmark = pytest.mark.needs("root", "bubblewrap", "ip", "openssl")

_NSENTER = "/usr/bin/nsenter"
_OWN, OTHER = "11.22.33.1", "11.22.33.44"
"""Public addresses that exist only in these networks: the proxy never connects to an address of its own machine."""


@dataclass(frozen=True)
class TwoNetworks:
    inside: int
    outside: int

    def python(self, folder: Path, python: str) -> str:
        program = folder / "python-inside"
        names = f"--net=/proc/{self.inside}/ns/net --mount=/proc/{self.inside}/ns/mnt"
        program.write_text(f'#!/bin/sh\nexec {_NSENTER} {names} -- {python} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        return str(program)


@contextmanager
def two_networks(folder: Path, names: Mapping[str, str]) -> Iterator[TwoNetworks]:
    """Make the networks during the block; the first network's machine resolves `names`."""
    hosts = folder / "hosts"
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in names.items())]
    hosts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with ExitStack() as stack:
        outside = stack.enter_context(_holding(("--net",), ":"))
        setup = f"mount --bind '{hosts}' /etc/hosts && ip link add cable type veth peer name cable netns {outside}"
        inside = stack.enter_context(_holding(("--net", "--mount", "--propagation", "private"), setup))
        for process, address in ((inside, _OWN), (outside, OTHER)):
            for words in ("link set lo up", f"addr add {address}/24 dev cable", "link set cable up"):
                command = (_NSENTER, f"--net=/proc/{process}/ns/net", "--", "ip", *words.split())
                subprocess.run(command, check=True)
        yield TwoNetworks(inside, outside)


@contextmanager
def _holding(namespaces: tuple[str, ...], setup: str) -> Iterator[int]:
    argv = ("unshare", *namespaces, "sh", "-c", f"{setup} && echo ready && exec sleep 600")
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", "the namespaces could not be made"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


_NAME = "packages.example.com"
_WHEEL, _TARBALL = "septet_sample-1.0-py3-none-any.whl", "septet-sample-1.0.0.tgz"
_PIP = (
    sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--retries=0", "install",
    "--cert=cert.pem", "--target=lib", f"https://{_NAME}/{_WHEEL}",
)  # fmt: skip
_NPM = (
    "npm", "install", "--cafile=cert.pem", "--no-audit", "--no-fund", "--fetch-retries=0", "--cache=cache",
    f"https://{_NAME}/{_TARBALL}",
)  # fmt: skip
_CLIENTS = {
    "pip": (_PIP, (sys.executable, "-IS", "-c", "exec(open('lib/septet_sample.py').read())")),
    "npm": (_NPM, ("node", "--eval", "require('septet-sample')")),
}
"""The command that installs the package, and the command that uses the package, by name."""


@dataclass(frozen=True)
class Desk:
    """A workspace in a network of its own; the settings name the host that its guests may reach."""

    root: Path
    supervisors: Supervisors

    def run(self, argv: tuple[str, ...]) -> GuestEnd:
        way_out = parse_way_out((f"{_NAME}:443",), "proxy", {})
        world = World(self.root / "home", parse_named_paths(guest_paths(), self.root), way_out=way_out)
        sandbox = find_sandbox("bwrap", {"PATH": os.environ["PATH"]}, world)
        writer_lock = open_lock(self.root / "writer")
        try:
            lock(writer_lock)
            folder = self.root / "records"
            runner = GuestRunner(Runs(self.root), self.supervisors, sandbox, folder, None, writer_lock)
            env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.root / "home")}
            return runner.run(GuestCommand(argv, env, self.root / "workspace", 120.0))
        finally:
            os.close(writer_lock)

    def hosts(self) -> set[str]:
        """Return the hosts to which the proxy let the last run through."""
        folder = max((self.root / "records").iterdir(), key=lambda path: int(path.name))
        lines = map(json.loads, (folder / NETWORK_LOG).read_text(encoding="utf-8").splitlines())
        return {f"{each['host']}:{each['port']}" for each in lines if each["allowed"]}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A host in a network with a server of packages."""
    root = tmp_path_factory.mktemp("desk")
    with two_networks(root, {_NAME: OTHER}) as networks:
        workspace, supervisors = root / "workspace", Supervisors(python=networks.python(root, sys.executable))
        workspace.mkdir()
        _certify(workspace)
        _write_packages(workspace)
        program = f"openssl s_server -WWW -accept {OTHER}:443 -cert cert.pem -key key.pem"
        command = [_NSENTER, f"--net=/proc/{networks.outside}/ns/net", "--", *program.split()]
        with subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert b"ACCEPT\n" in iter(server.stdout.readline, b"")
            yield Desk(root, supervisors)
            server.kill()
        supervisors.close()


@pytest.mark.parametrize("client", _CLIENTS)
def test_a_package_client_installs_from_a_host_that_the_settings_name(desk: Desk, client: str) -> None:
    """The client installs over https by the proxy, which logs the connection; the next guest uses the package."""
    install, use = _CLIENTS[client]
    end = desk.run(install)
    assert (end.record.cause, end.code) == ("exited", 0), end.output
    assert desk.hosts() == {f"{_NAME}:443"}
    assert desk.run(use).output.strip() == "it is used"


def _write_packages(folder: Path) -> None:
    about = "septet_sample-1.0.dist-info"
    with zipfile.ZipFile(folder / _WHEEL, "w") as wheel:
        wheel.writestr("septet_sample.py", "print('it is used')\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: septet-sample\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "septet_sample.py,,\n")
    package = folder / "package"
    package.mkdir()
    (package / "package.json").write_text('{"name": "septet-sample", "version": "1.0.0"}', encoding="ascii")
    (package / "index.js").write_text("console.log('it is used')\n", encoding="ascii")
    subprocess.run(("tar", "-czf", _TARBALL, "package"), cwd=folder, check=True)


def _certify(folder: Path) -> None:
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem")
    about = ("-days", "2", "-subj", f"/CN={_NAME}", "-addext", f"subjectAltName=DNS:{_NAME}")
    subprocess.run((*made, *about), cwd=folder, check=True, capture_output=True)
