"""The real pip and the real npm in a guest reach the hosts that the settings name, by the proxy alone."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes import package_registry
from fakes.guest_paths import guest_paths
from fakes.package_registry import write_packages

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

    def outside_command(self, *argv: str) -> tuple[str, ...]:
        return (_NSENTER, f"--net=/proc/{self.outside}/ns/net", "--", *argv)


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
_PIP = (
    sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--retries=0", "install",
    f"--index-url=https://{_NAME}/simple", "--cert=cert.pem", "--target=lib", "septet-sample",
)  # fmt: skip
_NPM = (
    "npm", "install", f"--registry=https://{_NAME}", "--cafile=cert.pem", "--no-audit", "--no-fund",
    "--fetch-retries=0", "--cache=cache", "septet-sample",
)  # fmt: skip
_CLIENTS = {
    "pip": (_PIP, (sys.executable, "-IS", "-c", "exec(open('lib/septet_sample.py').read()); print(WORDS)")),
    "npm": (_NPM, ("node", "--print", "require('septet-sample')")),
}
"""The command that installs the package, and the command that prints its words, by name."""


@dataclass(frozen=True)
class Desk:
    """A workspace in a network of its own; the settings name the host that its guests may reach."""

    root: Path
    supervisors: Supervisors

    def run(self, argv: tuple[str, ...]) -> GuestEnd:
        """Run a program as a repository's check."""
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
    """A host beside an internet with a package index and an npm registry."""
    root = tmp_path_factory.mktemp("desk")
    with two_networks(root, {_NAME: OTHER}) as networks:
        workspace, supervisors = root / "workspace", Supervisors(python=networks.python(root, sys.executable))
        workspace.mkdir()
        _certify(workspace)
        write_packages(workspace)
        program = (sys.executable, package_registry.__file__, OTHER, "443", str(workspace))
        registry = subprocess.Popen(networks.outside_command(*program), stdout=subprocess.PIPE)
        assert registry.stdout is not None
        assert registry.stdout.readline() == b"ready\n"
        yield Desk(root, supervisors)
        supervisors.close()
        registry.kill()
        registry.communicate()


@pytest.mark.parametrize("client", _CLIENTS)
def test_a_package_client_installs_from_a_host_that_the_settings_name(desk: Desk, client: str) -> None:
    """The client installs over https by the proxy, which logs the connection; the next guest uses the package."""
    install, use = _CLIENTS[client]
    end = desk.run(install)
    assert (end.record.cause, end.code) == ("exited", 0), end.output
    assert desk.hosts() == {f"{_NAME}:443"}
    assert desk.run(use).output.strip() == f"from {client}"


def _certify(folder: Path) -> None:
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem")
    about = ("-days", "2", "-subj", f"/CN={_NAME}", "-addext", f"subjectAltName=DNS:{_NAME}")
    subprocess.run((*made, *about), cwd=folder, check=True, capture_output=True)
