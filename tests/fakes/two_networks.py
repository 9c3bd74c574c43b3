"""Two networks joined by a cable: a machine with a public address, and the internet beside it."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

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
