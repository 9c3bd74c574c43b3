"""A guest's proxy: what it lets through, what it logs, and what happens when it is killed."""

import json
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from fakes.guests import Machine, machine_with_canaries
from fakes.waiting import wait_until

from septet.agents.guest.description import Description
from septet.agents.guest.network import NamedHost, OwnNetwork
from septet.agents.proxy.network_log import NETWORK_LOG
from septet.agents.proxy.network_rules import (
    Network,
    NetworkRefusalError,
    is_public,
    split_host,
    upstream_for,
)
from septet.agents.proxy.way_out import WayOut
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.supervisor.recorder import NAME

_ASK = """
def ask(first):
    with socket.create_connection(("127.0.0.1", 61128)) as way:
        way.sendall(first.encode() + b"\\r\\n\\r\\n")
        print(way.makefile("rb").read().decode())
def say_straight(*address):
    with socket.create_connection(address) as way:
        way.sendall(b"straight")
        print(way.makefile("rb").read().decode())
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    supervisors = Supervisors()
    with machine_with_canaries(tmp_path, supervisors) as machine:
        yield machine
    supervisors.close()


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """A server on this machine's loopback that answers with the request that it received."""
    address = getattr(request, "param", "127.0.0.1")
    family = socket.AF_INET6 if address == "::1" else socket.AF_INET
    server = socket.create_server((address, 0), family=family)

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, suppress(OSError):
                heard = client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nheard " + heard)

    thread = threading.Thread(target=serve)
    thread.start()
    yield int(server.getsockname()[1])
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def network_with(*own_hosts: NamedHost) -> Callable[[Description], Description]:
    def change(description: Description) -> Description:
        network, parts = OwnNetwork((), own_hosts), description.protections
        return Description(tuple(network if isinstance(each, OwnNetwork) else each for each in parts))

    return change


def log_of(machine: Machine) -> list[dict[str, object]]:
    return [json.loads(line) for line in (machine.records / NETWORK_LOG).read_text(encoding="utf-8").splitlines()]


def ends_of(machine: Machine) -> list[dict[str, object]]:
    return [line for line in log_of(machine) if "sent_bytes" in line]


@pytest.mark.needs("bubblewrap")
def test_a_host_that_is_not_named_is_refused_and_noted(machine: Machine) -> None:
    """A tunnel and a plain request to an unnamed host are refused; the answer names the setting."""
    printed = machine.run(
        f"{_ASK}\nask('CONNECT evil.example:443 HTTP/1.1')\nask('GET http://evil.example/x HTTP/1.1')\nask('nonsense')"
    )
    assert printed.count("403 Forbidden") == printed.count("SEPTET_GUEST_HOSTS") == 2
    assert "400 Bad Request" in printed
    noted = [(each["host"], each["port"], each["allowed"]) for each in log_of(machine)]
    assert noted == [("evil.example", 443, False), ("evil.example", 80, False)]


@pytest.mark.needs("bubblewrap")
def test_a_model_of_ones_own_is_reached_by_its_own_address_and_by_the_proxy(machine: Machine, port: int) -> None:
    """The user's own model answers at its own port, by a tunnel and by plain HTTP; the log counts the bytes."""
    change = network_with(NamedHost("127.0.0.1", port))
    printed = machine.run(
        f"{_ASK}\nask('GET http://127.0.0.1:{port}/plain?a=b HTTP/1.1\\r\\nProxy-Authorization: x')\n"
        f"say_straight('127.0.0.1', {port})\n"
        f"with socket.create_connection(('127.0.0.1', 61128)) as way:\n"
        f"    way.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n')\n    print(way.recv(39).decode())\n"
        "    way.sendall(b'tunnel')\n    print(way.makefile('rb').read().decode())\n",
        change,
    )
    assert "heard GET /plain?a=b HTTP/1.1" in printed
    assert "Connection: close" in printed.partition("heard GET")[2]
    assert "heard straight" in printed
    assert "heard tunnel" in printed
    assert "Authorization" not in printed
    assert [(each["allowed"], each["received_bytes"] != 0) for each in ends_of(machine)] == [(True, True)] * 3


@pytest.mark.needs("bubblewrap", "IPv6")
@pytest.mark.parametrize("port", ["::1"], indirect=True)
def test_a_model_of_ones_own_may_be_at_the_loopback_of_ipv6(machine: Machine, port: int) -> None:
    """A model at the loopback of IPv6 answers at its own port and by the proxy."""
    printed = machine.run(
        f"{_ASK}\nsay_straight('::1', {port})\nask('GET http://[::1]:{port}/plain HTTP/1.1')",
        network_with(NamedHost("::1", port)),
    )
    assert "heard straight" in printed
    assert f"Host: [::1]:{port}" in printed


@pytest.mark.needs("bubblewrap")
def test_what_went_over_a_connection_that_its_guest_leaves_open_is_noted_by_the_guests_end(
    machine: Machine, port: int
) -> None:
    """The end of the guest is reported only when the log holds the bytes of every connection."""
    change = network_with(NamedHost("127.0.0.1", port))
    for _ in range(5):
        machine.run(
            f"way = socket.create_connection(('127.0.0.1', {port}))\nway.sendall(b'straight')\nway.recv(9)", change
        )
        assert [each["sent_bytes"] for each in ends_of(machine)] == [8]


@asynccontextmanager
async def guest_at_work(
    machine: Machine, program: str, change: Callable[[Description], Description] = lambda each: each
) -> AsyncIterator[list[str]]:
    """Run a guest during a block; it runs the program after the block, and the list gets its output."""
    go, printed = machine.files.workspace / "go", list[str]()
    waits = f"import time\nopen('begun', 'w').close()\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    thread = threading.Thread(target=lambda: printed.append(machine.run(waits + program, change)))
    thread.start()
    await wait_until((machine.files.workspace / "begun").exists)
    yield printed
    go.touch()
    thread.join()


@pytest.mark.needs("bubblewrap")
async def test_a_proxy_that_is_killed_is_replaced_and_the_guest_goes_on(machine: Machine, port: int) -> None:
    """A killed proxy is replaced while the guest runs, and the guest's next connection works."""
    program = f"{_ASK}\nsay_straight('127.0.0.1', {port})"
    async with guest_at_work(machine, program, network_with(NamedHost("127.0.0.1", port))) as printed:
        first = proxies(machine)
        os.kill(first[0], signal.SIGKILL)
        await wait_until(lambda: proxies(machine), lambda found: len(found) == 1 and found != first)
    assert "heard straight" in printed[0]


@pytest.mark.needs("bubblewrap")
async def test_a_proxy_that_stands_still_keeps_no_guest_from_its_end(machine: Machine) -> None:
    """The supervisor waits a moment for a stopped proxy's log; then it reports the end, and the proxy dies."""
    async with guest_at_work(machine, "print('done')") as printed:
        (proxy,) = proxies(machine)
        os.kill(proxy, signal.SIGSTOP)
    assert printed == ["done\n"]
    await wait_until(lambda: not psutil.pid_exists(proxy))


def proxies(machine: Machine) -> list[int]:
    """Return the processes of proxies: children of a supervisor other than sandbox and recorder."""
    folder = machine.root / "records"
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            parent = process.parent()
            is_sibling = parent is not None and parent.cwd().startswith(str(folder))
            if is_sibling and process.name() not in {"bwrap", NAME.decode()}:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
        "0.0.0.0",  # noqa: S104 -- it is refused

        "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:8.8.8.8", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::808:808",
        "64:ff9b:1:fffe::1", "fec0::1", "nonsense",
    ],
)  # fmt: skip
def test_addresses_of_no_host_on_the_internet_are_never_public(address: str) -> None:
    """Private, local, multicast and invalid addresses are not public, in any form and inside other addresses."""
    assert not is_public(address)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Host.Example.:8443", ("host.example", 8443)), ("host", ("host", 443)), ("[::1]:80", ("::1", 80))],
)
def test_names_have_one_form(text: str, expected: tuple[str, int]) -> None:
    """Upper case, a final dot and brackets do not change the host."""
    assert split_host(text, 443) == expected


@pytest.mark.parametrize("text", ["", ":1", "a:0", "a:70000", "a:b", "a b:1", "\xe4:1"])
def test_what_is_no_host_is_refused(text: str) -> None:
    """Text that is no host is refused before it is resolved."""
    with pytest.raises(NetworkRefusalError):
        split_host(text, 443)


@contextmanager
def proxy_that_lets_through() -> Iterator[tuple[str, list[bytes]]]:
    """Serve one tunnel as a worker's own proxy does, and return its address and the received requests."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                heard.append(client.recv(4096))
                client.sendall(b"HTTP/1.1 200 yes\r\n\r\nfrom there")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://ada:s%40crat@127.0.0.1:{server.getsockname()[1]}", heard
        thread.join()


@pytest.mark.parametrize("exempt", ["other.example,.named.example", "*"])
def test_hosts_that_the_worker_asks_straight_are_asked_straight(exempt: str) -> None:
    """Hosts in the worker's `NO_PROXY` are reached without the worker's proxy."""
    proxies = {"https_proxy": "http://127.0.0.1:1", "no_proxy": exempt}
    assert upstream_for(proxies, "api.named.example", 443) is None
    assert upstream_for(proxies, "api.named.example", 80) is None


def resolving_to(*addresses: str) -> Callable[[str, int], Sequence[str]]:
    def resolver(_name: str, _port: int) -> Sequence[str]:
        if not addresses:
            raise OSError(0, "no such name")
        return addresses

    return resolver


@pytest.mark.parametrize("address", ["10.1.2.3", "169.254.169.254", "fd00::1", "127.0.0.1"])
def test_a_workers_proxy_is_not_asked_for_a_name_that_is_private_here(address: str) -> None:
    """One private address is enough to refuse a name, because the worker's proxy would choose the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxies = {"https_proxy": f"http://127.0.0.1:{server.getsockname()[1]}"}
        fields = {"port": 1, "hosts": [["packages.example", 443]], "proxies": proxies}
        with pytest.raises(NetworkRefusalError, match="not public"):
            Network(fields, resolving_to("8.8.8.8", address)).connect("packages.example", 443)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("addresses", [(), ("8.8.8.8", "2606:4700::1111")])
@pytest.mark.parametrize("kind", ["hosts", "own_hosts"])
def test_a_workers_proxy_is_asked_for_other_names(addresses: tuple[str, ...], kind: str) -> None:
    """The worker's proxy gets its password, and requests for public names and names that only the proxy may know."""
    with proxy_that_lets_through() as (address, heard):
        fields = {"port": 1, kind: [["packages.example", 443]], "proxies": {"https_proxy": address}}
        with Network(fields, resolving_to(*addresses)).connect("packages.example", 443) as way:
            assert way.recv(100) == b"from there"
    assert heard[0].startswith(b"CONNECT packages.example:443 HTTP/1.1\r\n")
    assert b"Basic YWRhOnNAY3JhdA==" in heard[0]


def test_a_resolver_that_says_nothing_is_not_waited_for_twice() -> None:
    """A resolver that never answers delays only the first of several look-ups."""
    asked: list[str] = []
    over = threading.Event()

    def say_nothing(name: str, _port: int) -> Sequence[str]:
        asked.append(name)
        over.wait()
        return ()

    network = Network({"port": 1}, say_nothing)
    assert [network.look_up("packages.example", 443) for _ in range(3)] == [[], [], []]
    over.set()
    assert asked == ["packages.example"]


@pytest.mark.parametrize("name", ["10.0.0.1", "127.1", "::1", "0x7f.1", "2130706433"])
def test_a_private_address_is_refused_by_a_workers_proxy_too(name: str) -> None:
    """A private address is refused in every spelling, before the worker's proxy gets the request."""
    network = Network({"port": 1, "hosts": [[name, 443]], "proxies": {"https_proxy": "http://127.0.0.1:1"}})
    with pytest.raises(NetworkRefusalError):
        network.connect(name, 443)


def test_a_proxy_that_cannot_be_replaced_keeps_no_supervisor_from_its_record() -> None:
    """A supervisor whose proxy cannot be replaced does not wait for the proxy's log or end."""
    way_out = WayOut({"port": 3128})
    assert not way_out.replace()
    way_out.await_log()
    way_out.send_log(os.open(os.devnull, os.O_RDONLY))
    way_out.end()
    way_out.control_of_proxy.close()
