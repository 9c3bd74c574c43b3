"""A guest's network leads out only by its proxy, and the proxy does not lead to this machine."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.guests import CANARY, Machine, machine_with_canaries
from fakes.network_routes import (
    NAME_ROUTES,
    NAMES,
    NETWORK_ROUTES,
    PORT_OF_NAMES,
    PRELUDE,
    NetworkRoute,
    Servers,
    model_of,
    servers_with_canary,
)

from septet.agents.guest.network import FIRST_MODEL_PORT, NamedHost, OwnNetwork
from septet.agents.runs.folders import Run
from septet.agents.runs.logs import network_lines
from septet.agents.sandbox.supervisors import Supervisors

pytestmark = pytest.mark.needs("bubblewrap")

_PYTHON = f"""\
#!{sys.executable} -IS
import ctypes, os, signal, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, NEW_NETWORK, PRIVATE, BIND, DIES_WITH_PARENT = 0x20000, 0x40000000, 0x44000, 0x1000, 1

def done(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

done(libc.unshare(NEW_MOUNTS | NEW_NETWORK))
done(libc.mount(None, b"/", None, PRIVATE, None))
done(libc.mount(os.fsencode(os.path.dirname(__file__) + "/hosts"), b"/etc/hosts", None, BIND, None))
subprocess.run(("ip", "link", "set", "lo", "up"), check=True, stdin=subprocess.DEVNULL)
for address in {tuple(NAMES.values())!r}:
    route = ("ip", "route", "add", "local", address, "dev", "lo", "src", "127.0.0.1")
    subprocess.run(route, check=True, stdin=subprocess.DEVNULL)
server = socket.create_server(("0.0.0.0", {PORT_OF_NAMES}))
if os.fork() == 0:
    libc.prctl(DIES_WITH_PARENT, signal.SIGKILL)
    while True:
        client, _ = server.accept()
        client.sendall({CANARY.encode()!r})
        client.close()
server.close()
os.execv(sys.executable, (sys.executable, *sys.argv[1:]))
"""


def python_of_names(folder: Path) -> str:
    """Return a Python for supervisors in such a network; empty if this user cannot make it."""
    hosts = "".join(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **NAMES}.items())
    (folder / "hosts").write_text(hosts, encoding="utf-8")
    program = folder / "python"
    program.write_text(_PYTHON, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    tried = subprocess.run((program, "-c", ""), check=False, capture_output=True, timeout=60)
    return "" if tried.returncode else str(program)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with servers_with_canary() as servers:
        yield servers


@pytest.fixture(scope="module")
def machine_of_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Yield a machine whose guests' proxies stand in a network where names resolve to private addresses."""
    python = python_of_names(tmp_path_factory.mktemp("names"))
    supervisors = Supervisors(python=python, env={"PATH": os.environ["PATH"]})
    with machine_with_canaries(tmp_path_factory.mktemp("machine"), supervisors) as machine:
        yield machine
    supervisors.close()


@pytest.mark.needs("root", "ip")
@pytest.mark.parametrize("route", NAME_ROUTES, ids=lambda route: route.name)
def test_a_name_leads_to_no_private_address(
    machine_of_names: Machine, servers: Servers, route: NetworkRoute
) -> None:
    """The proxy resolves the name and connects nowhere; without the protection the guest finds the canary."""
    check(machine_of_names, servers, route)


@pytest.mark.parametrize("route", NETWORK_ROUTES, ids=lambda route: route.name)
def test_a_way_out_finds_no_canary(machine: Machine, servers: Servers, route: NetworkRoute) -> None:
    """The guest's own network blocks the route; without the protection the guest finds the canary."""
    check(machine, servers, route)


@pytest.mark.parametrize(
    ("cli", "refused"),
    [
        ("claude", "by_proxy('CONNECT ' + 'n' * 200 + str(number) + '.example:443 HTTP/1.1')"),
        ("codex", f"ask({FIRST_MODEL_PORT}, f'GET /files/{{number}} HTTP/1.1')"),
    ],
)
def test_what_is_let_through_has_its_line_after_a_flood_of_refusals(
    machine: Machine, servers: Servers, cli: str, refused: str
) -> None:
    """After more refusals than the log has lines for, an allowed request still has its own line."""
    model = model_of(cli, servers.gateway)
    asked = model.requests[-1] if cli == "codex" else "POST /v1/messages"
    network = OwnNetwork((), (NamedHost("127.0.0.1", servers.gateway),), models=(model,))
    program = (
        f"{PRELUDE.format(servers=servers)}\nimport contextlib, io\n"
        f"with contextlib.redirect_stdout(io.StringIO()):\n    for number in range(1500):\n        {refused}\n"
        f"ask({FIRST_MODEL_PORT}, '{asked.replace('*', 'm')} HTTP/1.1')\n"
    )
    machine.run(program, NETWORK_ROUTES[0].change(network))
    folders = sorted((machine.root / "records").iterdir(), key=lambda path: int(path.name))
    lines = list(network_lines(Run(folders[-1], None)))
    assert [line.request for line in lines if line.allowed] == [asked.replace("*", "m")]
    assert sum(line.count for line in lines if not line.allowed) == 1500
    assert len(lines) < 1500, "some are only counted: so the flood was larger than their part"


def check(machine: Machine, servers: Servers, route: NetworkRoute) -> None:
    program = PRELUDE.format(servers=servers) + route.program
    printed = machine.run(program, route.change(route.seen(servers)))
    assert CANARY not in printed
    assert "it ended otherwise" not in printed
    assert CANARY in machine.run(program, route.change(route.without(servers)))
