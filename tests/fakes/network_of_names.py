"""A Python in its own network, which only root can make, and whose names lead to private addresses."""

import stat
import subprocess
import sys
from pathlib import Path

from fakes.guests import CANARY
from fakes.network_routes import NAMES, PORT_OF_NAMES

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
