"""Orders to supervisors, as they cross a socket between two releases."""

import json
import os
import socket
from typing import Any

import pytest

from septet.agents.processes.order import (
    WARM,
    Confinement,
    Limits,
    Order,
    receive_order,
    send_order,
)

LIMITS = Limits(3600.5, 600.0, 1.5, 60.0)
ORDER = Order(
    folder="/runs/wo-1/1-plan-1",
    directory="/work",
    argv=("/bin/agent", "--say", 'a "word"\n', os.fsdecode(b"\xff.txt")),
    env={"PATH": "/bin", "PAIR": "a=b", "EMPTY": ""},
    limits=LIMITS,
)
ORDER.kind, ORDER.confined = WARM, True


def fields_of(order: Order) -> dict[str, Any]:
    return {**vars(order), "limits": vars(order.limits)}


def received(payload: bytes) -> Order | None:
    """Return the order that a supervisor reads from a message without locks."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"%d\n%s" % (len(payload), payload))
        ours.shutdown(socket.SHUT_WR)
        answer = receive_order(theirs)
    return answer[0] if answer is not None else None


def test_an_order_arrives_as_it_was_sent() -> None:
    """All fields arrive, also bytes that are no UTF-8, and so do the locks, which no agent inherits."""
    ours, theirs = socket.socketpair()
    locks = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
    with ours, theirs:
        send_order(ours, ORDER, locks)
        answer = receive_order(theirs)
    assert answer is not None
    order, arrived = answer
    assert fields_of(order) == fields_of(ORDER)
    assert [os.get_inheritable(lock) for lock in arrived] == [False] * 3
    for lock in (*locks, *arrived):
        os.close(lock)


def test_sandbox_and_limits_reach_a_supervisor_that_knows_them() -> None:
    """The supervisor reads the sandbox, the limits that it knows, and that it has to give up root."""
    resources = {"processes": 9, "memory_bytes": 8, "disk_bytes": 7, "tree_entries": 6, "output_bytes": 5}
    confinement = Confinement("/bin/bwrap", ("--unshare-pid",), {"/etc/passwd": "agent"}, "00")
    confinement.gives_up_root = True
    limits = LIMITS.with_resources({**resources, "of_a_later_release": 4})
    order = Order(folder="/r", directory="/w", argv=("/bin/agent",), env={}, limits=limits).inside(confinement)
    today = received(order.to_json())
    assert today is not None
    assert today.confinement is not None
    assert vars(today.limits) == vars(LIMITS) | resources
    assert vars(today.confinement) == vars(confinement)


def test_fields_of_a_later_release_are_ignored() -> None:
    """An order of a later release is read without its unknown fields."""
    fields = json.loads(ORDER.to_json().decode("utf-8", "surrogateescape"))
    more = {**fields, "later": 1, "limits": {**fields["limits"], "later_seconds": 1.0}}
    order = received(os.fsencode(json.dumps(more, ensure_ascii=False)))
    assert order is not None
    assert fields_of(order) == fields_of(ORDER)


@pytest.mark.parametrize("payload", [b'{"version": 1}', b'{"version": 2}', b"{", b"", b"/runs\0/work"])
def test_what_is_no_order_of_a_known_version_starts_nothing(payload: bytes) -> None:
    """A message that is no order of a known version gives no order."""
    assert received(payload) is None


def test_nobody_is_told_an_agent_s_environment() -> None:
    """A printed order shows no environment, which holds keys."""
    assert "PAIR" not in repr(ORDER)
