"""Become `septet` in a container: lease a slot of the volume, and go.

Replicas share a volume and never a state directory: each leases a slot of its own, `slots/<n>`, by a lock on
`slots/<n>.lease` that the kernel gives back when the container ends, however it ends. A replica takes the first
free slot with all that is in it: the host id, mirrors, workspaces and runs, and so the work of the container that
had it before. A runner leases the same slot once more, by `slots/<n>.runner`: it starts the agents of the slot's
worker, and so they outlive the worker's container. What a dead runner had started is dead; the sessions, which lie
in `homes/<n>`, are resumed.
"""

import fcntl
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

VOLUME = Path(os.environ.get("SEPTET_VOLUME", "/var/lib/septet"))
STATE_DIR = Path(os.environ["SEPTET_STATE_DIR"])
MAX_SLOTS = 1000


def main(arguments: Sequence[str]) -> None:
    """Replace this process by `septet` with `arguments`; return never."""
    if needs_slot(arguments):
        slot = lease_slot("runner" if arguments[0] == "runner" else "lease")
        point_to(slot)
        home = VOLUME / "homes" / slot.name
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ["HOME"] = str(home)
        print(json.dumps({"event": "slot_leased", "slot": slot.name, "state_dir": str(slot)}), file=sys.stderr)
    elif arguments[:1] == ["serve"]:
        api = VOLUME / "api"
        api.mkdir(mode=0o700, parents=True, exist_ok=True)
        point_to(api)
    os.execvp("septet", ["septet", *arguments])  # noqa: S607 -- the image's PATH


def needs_slot(arguments: Sequence[str]) -> bool:
    """Tell whether the command runs agents; the others only talk to the server."""
    return arguments[:1] in (["worker"], ["runner"], ["up"], ["demo"]) and not {
        "--register",
        "--help",
    }.intersection(arguments)


def lease_slot(kind: str) -> Path:
    """Take the first free slot and return its folder. The lease lasts as long as the process that this becomes."""
    slots = VOLUME / "slots"
    for number in range(1, MAX_SLOTS + 1):
        slots.mkdir(mode=0o700, parents=True, exist_ok=True)
        lease = os.open(slots / f"{number}.{kind}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lease)
            continue
        os.set_inheritable(lease, True)
        os.truncate(lease, 0)
        os.write(lease, json.dumps(holder()).encode())
        slot = slots / str(number)
        slot.mkdir(mode=0o700, exist_ok=True)
        return slot
    sys.exit(f"septet: all {MAX_SLOTS} slots in {slots} are leased; give some replicas a volume of their own.")


def holder() -> dict[str, str]:
    """Say who holds the lease: a process is only known by its boot and its pid namespace."""
    return {
        "container": socket.gethostname(),
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        "pid_namespace": str(Path("/proc/self/ns/pid").readlink()),
    }


def point_to(folder: Path) -> None:
    """Let the state directory be a link to a folder of the volume, for `docker exec` too."""
    link = STATE_DIR.with_name(f"{STATE_DIR.name}.{os.getpid()}")
    link.unlink(missing_ok=True)
    link.symlink_to(folder)
    link.replace(STATE_DIR)


if __name__ == "__main__":
    main(sys.argv[1:])
