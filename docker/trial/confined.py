"""Containers whose agents are confined by bubblewrap, as the override lets it start.

Compose v2 starts them by its file. docker-compose 1.29 hands the override's `systempaths` on to a daemon that does
not know it: there Docker's own client starts them, like those of Compose but for what is tried here. Each agent
tries to read a canary outside first, and says on stderr what came of it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import stack
from table import expect

OVERRIDE = "docker-compose.sandbox.yml"
LOOKING = "docker/trial/looking.yml"
CANARY = "canary-5d1f"
SHARED = "/var/lib/septet/homes/canary"
"""On a volume of workers and runners."""
AGENT = "/trial/looking-agent"
LEFT_OUT = ("SEPTET_SCRIPTED_SCENARIO", "HOSTNAME")
STEPS = 7


def check_sandbox(origin: str) -> None:
    """In containers with the override's options bubblewrap confines each agent, which finds no canary."""
    worker = stack.running_workers()[0]
    stack.shell(worker, f"echo {CANARY} > {SHARED}")
    with under_override() as (runner, worker):
        (about,) = json.loads(stack.docker("inspect", runner))
        options = sorted(about["HostConfig"]["SecurityOpt"])
        expect("override: options of the runner", ", ".join(options), holds="seccomp=unconfined" in options)
        status = stack.execute(runner, "cat", "/proc/1/status")
        rights = re.findall(r"(?:CapEff|NoNewPrivs):\t(\w+)", status)
        expect("override: capabilities, no_new_privs", ", ".join(rights), holds=rights == ["0" * 16, "1"])
        outside = stack.execute(runner, "cat", SHARED).strip()
        expect("override: the canary, read by the runner's own user", outside, holds=outside == CANARY)
        check_order(worker, "wo-sandboxed", origin)


@contextmanager
def under_override() -> Iterator[Sequence[str]]:
    """Have one runner and one worker alone at work, with the override's options."""
    if not stack.is_second_compose():
        options = [part for each in read_options() for part in ("--security-opt", each)]
        options += ["--env", "SEPTET_SANDBOX=bwrap"]
        again = [start_like(stack.running(service)[0], *options) for service in ("runner", "worker")]
        with instead_of_others(again) as containers:
            yield containers
        return
    stack.replace_all(OVERRIDE, LOOKING, replicas=1)
    try:
        (worker,) = stack.wait_for("a healthy worker", lambda: stack.healthy_workers(1))
        yield stack.running("runner")[0], worker
    finally:
        stack.replace_all()
        stack.wait_for("healthy workers", stack.healthy_workers)


def read_options() -> list[str]:
    """Return the options of the override, as Docker's client takes them."""
    return re.findall(r"^ +- (\S+)$", (stack.ROOT / OVERRIDE).read_text(encoding="utf-8"), re.MULTILINE)


def start_like(container: str, *options: str) -> str:
    """Start a container like one of Compose's, with other options; return its id."""
    (about,) = json.loads(stack.docker("inspect", container))
    given, host = about["Config"], about["HostConfig"]
    env = [each for each in given["Env"] if each.partition("=")[0] not in LEFT_OUT]
    network = next(iter(about["NetworkSettings"]["Networks"]))
    return stack.docker(
        "run", "--detach", "--network", network, "--volumes-from", container,
        *(part for each in env for part in ("--env", each)),
        "--env", f"SEPTET_SCRIPTED_PATH={AGENT}", "--env", "SEPTET_GUEST_PATHS=/opt/septet",
        "--cap-drop", "ALL", "--read-only", "--security-opt", "no-new-privileges:true",
        "--memory", str(host["Memory"]), "--pids-limit", str(host["PidsLimit"]),
        *(part for path, how in host["Tmpfs"].items() for part in ("--tmpfs", f"{path}:{how}".rstrip(":"))),
        *options, given["Image"], *given["Cmd"],
    ).strip()  # fmt: skip


@contextmanager
def instead_of_others(containers: Sequence[str]) -> Iterator[Sequence[str]]:
    """Have these alone at work in the block, the worker last; what they wrote is shown if it fails."""
    worker = containers[-1]
    try:
        stack.wait_for("a healthy worker", lambda: stack.health_of(worker) == "healthy")
        stack.compose("stop", "--timeout", "30", "worker", "runner")
        yield containers
    except BaseException:
        print(*(stack.docker("logs", "--tail", "40", each) for each in containers), sep="\n")
        raise
    finally:
        stack.docker("rm", "--force", "--volumes", *containers)
        stack.start_workers()
        stack.wait_for("healthy workers", stack.healthy_workers)


def check_order(worker: str, order_id: str, origin: str) -> None:
    """A work order ends in a pull request, and each of its agents was confined and found no canary."""
    order = ("--repo", origin, "--title", "Totals in a sandbox", "--body", "Write `done` into `done.txt`.")
    stack.septet(worker, "run", *order, "--agent", "scripted", "--id", order_id)
    task = stack.wait_for("the end of the work order", lambda: closed(worker, order_id))
    expect(f"{order_id}: end", f"{task['status']} {task['error'] or ''}", holds=task["status"] == "completed")
    state = stack.shell(worker, "echo $SEPTET_STATE_DIR").strip()
    records = [
        json.loads(each) for each in stack.shell(worker, each_file(state, order_id, "run.json")).splitlines()
    ]
    kinds = {record["sandbox"] for record in records}
    expect(f"{order_id}: agents, what confined them", f"{len(records)}, {kinds}", holds=kinds == {"bwrap"})
    printed = stack.shell(worker, f"cat {state}/runs/{order_id}/*/stderr.log")
    users = {int(each) for each in re.findall(r"^user (\d+)$", printed, re.MULTILINE)}
    refused = len(re.findall(r"canary: (?:No such file|Permission denied)", printed))
    seen = f"{refused} refusals, users {sorted(users)}"
    is_right = refused == 2 * STEPS and CANARY not in printed and len(records) == STEPS
    expect(f"{order_id}: what its agents found of two canaries", seen, holds=is_right)
    expect(f"{order_id}: the users that they are inside", f"{sorted(users)}", holds=users == {1000})


def each_file(state: str, order_id: str, name: str) -> str:
    """Return the shell's line that prints a file of each run, one a line."""
    return f"for file in {state}/runs/{order_id}/*/{name}; do tr -d '\\n' < $file; echo; done"


def closed(worker: str, order_id: str) -> dict[str, Any] | None:
    """Return the work order when it has come to its end."""
    task: dict[str, Any] = stack.septet(worker, "show", order_id)["task"]
    return task if task["status"] in {"completed", "failed", "cancelled"} else None
