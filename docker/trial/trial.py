"""Put work orders through worker containers, which are killed, scaled and upgraded as an agent works.

Needs Compose and a Docker daemon that has the images `septet:latest`, `septet:next` (a later build) and
`septet-trial-server` (with Temporal's CLI). `TRIAL_SECRETS` names a folder, `TRIAL_IMAGE` the image's archive. It
prints a table of what it saw, ends with 0 when all of it was as it should be and with 1 otherwise, and leaves no
container and no volume behind. `scripts/container-trial` brings all that it needs.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import confined
import stack
from table import NotSoError, expect, note

ORIGIN = "/srv/git/sample.git"
MAKE_ORIGIN = f"""set -eu
git init --quiet --bare --initial-branch main {ORIGIN}
git clone --quiet {ORIGIN} /tmp/sample 2> /dev/null
cd /tmp/sample
printf 'def total(prices):\\n    return sum(prices[1:])\\n' > totals.py
git add . && git -c user.name=Trial -c user.email=trial@localhost commit --quiet --message 'Totals'
git push --quiet origin HEAD:main
chown -R 10001:10001 /srv/git
"""
BUILD_TOOLS = ("cc", "gcc", "make", "npm", "node", "pip")
MOST_MEGABYTES = 430
"""Of the image without agent CLIs."""
ROOT_PATHS = ("/", "/usr", "/opt/septet", "/var/lib/septet")
BUILD_PLACES = ("/tmp", "/home/septet")  # noqa: S108 -- in a container
NEXT = "next"
STEPS = 7
HALF_DONE = "half-done.txt"
MEGABYTE = 1_000_000


def main() -> int:
    """Run the trial and return the exit code."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, lambda number, _: sys.exit(128 + number))
    started = time.monotonic()
    try:
        note("Compose", stack.compose("version", "--short").strip())
        check_files()
        with stack.containers():
            check_everything(started)
    except (NotSoError, TimeoutError, subprocess.CalledProcessError) as error:
        print(f"container-trial: {error}", file=sys.stderr)
        return 1
    note("the trial passed, in seconds", f"{time.monotonic() - started:.0f}")
    return 0


def check_everything(started: float) -> None:
    """Look at the image, the replicas, the work orders and the ends of containers."""
    workers = stack.wait_for("healthy workers", stack.healthy_workers)
    note("healthy replicas, in seconds from nothing", f"{len(workers)} in {time.monotonic() - started:.0f}")
    check_image(workers[0])
    check_secrets()
    for service in ("worker", "runner", "api"):
        check_rights(service)
    check_network(workers[0])
    check_programs()
    check_slots(workers)
    make_origin()
    undisturbed = check_first(workers[0])
    check_api()
    check_temporal_cli(workers[0])
    check_scale()
    check_killed("wo-replaced", "worker", replace, undisturbed)
    check_killed("wo-restarted", "worker", lambda victim: stack.docker("start", victim), undisturbed)
    check_killed("wo-runner-replaced", "runner", replace, undisturbed)
    check_upgrade()
    confined.check_sandbox(ORIGIN)
    check_stop(stack.wait_for("healthy workers", stack.healthy_workers)[-1])
    check_health()


def check_files() -> None:
    """Compose takes its files."""
    services = sorted(stack.compose("config", "--services").split())
    expect("services of the valid docker-compose.yml", ", ".join(services), holds="worker" in services)


def check_image(worker: str) -> None:
    """No root, an init, no build tools."""
    size = int(stack.docker("image", "inspect", "--format", "{{.Size}}", "septet:latest")) / MEGABYTE
    expect(f"the image, in MB (at most {MOST_MEGABYTES})", f"{size:.0f}", holds=size <= MOST_MEGABYTES)
    user = stack.execute(worker, "id", "-u").strip()
    expect("the workers' user id", user, holds=user == "10001")
    init = stack.execute(worker, "cat", "/proc/1/comm").strip()
    expect("their first process", init, holds=init == "tini")
    found = stack.shell(worker, f"for tool in {' '.join(BUILD_TOOLS)}; do command -v $tool || true; done").split()
    # The public Python image brings a pip of its own, outside of the application.
    expect("build tools in the image", ", ".join(found) or "none", holds=set(found) <= {"/usr/local/bin/pip"})


def check_secrets() -> None:
    """No layer of the image holds a key that lay beside the clone when it was built."""
    keys = [file.read_bytes().strip() for file in Path(os.environ["TRIAL_SECRETS"]).iterdir()]
    held = any(key in Path(os.environ["TRIAL_IMAGE"]).read_bytes() for key in keys)
    expect("keys of the trial in the image's layers", "some" if held else "none", holds=bool(keys) and not held)


def check_rights(service: str) -> None:
    """A service's first process has no capability and can get none, its root is read-only, and it has limits."""
    container = stack.running(service)[0]
    status = dict(line.split(":\t", 1) for line in stack.execute(container, "cat", "/proc/1/status").splitlines())
    rights = f"capabilities {status['CapEff']}, no_new_privs {status['NoNewPrivs']}"
    expect(f"{service}: rights", rights, holds=int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1")
    tries = " ".join(f"touch {path}/probe 2> /dev/null && echo {path};" for path in ROOT_PATHS)
    written = stack.shell(container, f"{tries} true").split()
    expect(f"{service}: folders of the image that it can write", ", ".join(written) or "none", holds=not written)
    limits = stack.docker(
        "inspect", "--format", "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}", container
    ).split()
    expect(
        f"{service}: bytes of memory, processes", ", ".join(limits), holds=all(int(each) > 0 for each in limits)
    )


def check_network(worker: str) -> None:
    """A runner knows no other service by its name; a worker, which is asked the same, does."""
    names = ["temporal", "postgres", "api", "worker"]
    ask = f"for name in {' '.join(names)}; do getent hosts $name > /dev/null && echo $name; done; true"
    known = [stack.shell(container, ask).split() for container in (worker, stack.running("runner")[0])]
    told = " and ".join(", ".join(each) or "none" for each in known)
    expect("services that a worker and a runner know by name", told, holds=known == [names, []])


def check_programs() -> None:
    """Where agents build and test, what they have made can be started."""
    write = "printf '#!/bin/sh\necho started' > $place/probe; chmod +x $place/probe; $place/probe; rm $place/probe"
    started = stack.shell(
        stack.running("runner")[0], f"for place in {' '.join(BUILD_PLACES)}; do {write}; done"
    ).split()
    expect(
        "runner: a program in each of " + ", ".join(BUILD_PLACES),
        ", ".join(started) or "not started",
        holds=len(started) == len(BUILD_PLACES),
    )


def make_origin() -> None:
    """Make the repository that work orders are for, on a volume that all workers share."""
    volume = f"{stack.PROJECT}_origins:/srv/git"
    stack.docker(
        "run", "--rm", "--user", "0", "--volume", volume, "--entrypoint", "sh", "septet:latest", "-c", MAKE_ORIGIN
    )


def check_slots(workers: list[str], replicas: int = stack.REPLICAS) -> None:
    """Each replica has a state directory and a host id of its own, under a lease that names it."""
    slots = {stack.slot_of(worker) for worker in workers}
    expect("a slot for each replica", ", ".join(sorted(slots)), holds=len(slots) == replicas)
    hosts = {stack.host_of(worker) for worker in workers}
    expect("a host id for each replica", ", ".join(sorted(hosts)), holds=len(hosts) == replicas)
    leases = [json.loads(stack.execute(workers[0], "cat", f"{slot}.lease")) for slot in slots]
    namespaces = {lease["pid_namespace"] for lease in leases}
    expect("pid namespaces on their leases", len(namespaces), holds=len(namespaces) == replicas)


def check_first(worker: str) -> float:
    """A work order ends in a pull request; return its seconds."""
    task = stack.septet(worker, "run", *order("Totals leave out the first price"), "--id", "wo-first", "--wait")[
        "task"
    ]
    expect_pull_request(worker, task)
    note("wo-first: seconds", f"{seconds_of(task):.1f}")
    return seconds_of(task)


def check_api() -> None:
    """The API's container is healthy, lets nobody in without the token, and knows the work order."""
    api = stack.wait_for("the API", lambda: next(iter(stack.running("api")), None))
    stack.wait_for("a healthy API", lambda: stack.health_of(api) == "healthy")
    ask = "import json, sys, urllib.request as u; r = u.Request(sys.argv[1], headers=json.loads(sys.argv[2]))"
    ask += "\ntry: print(u.urlopen(r).read().decode())\nexcept u.HTTPError as error: print(error.code)"
    address = "http://127.0.0.1:8888/agent-work-orders/wo-first"
    refused = stack.execute(api, "python3", "-c", ask, address, "{}").strip()
    expect("the API without its token", refused, holds=refused == "401")
    token = stack.execute(api, "cat", f"{stack.STATE_DIR}/api-token").strip()
    bearer = json.dumps({"Authorization": f"Bearer {token}"})
    status = json.loads(stack.execute(api, "python3", "-c", ask, address, bearer))["status"]
    expect("the API with it: wo-first is", status, holds=status == "completed")


def check_temporal_cli(worker: str) -> None:
    """What Temporal's own CLI starts ends in a pull request, in the namespace that `register` made."""
    content = json.dumps({"repository": ORIGIN, "title": "Started by Temporal's CLI", "agent": "scripted"})
    start = ("workflow", "start", "--task-queue", "septet", "--type", "WorkOrder", "--workflow-id", "wo-cli")
    stack.temporal(*start, "--input", content)
    task = stack.wait_for("the end of the work order", lambda: closed(worker, "wo-cli"))
    expect_pull_request(worker, task)


def check_scale() -> None:
    """One more replica is one more host; one less leaves the others at work."""
    stack.start_workers(stack.REPLICAS + 1)
    workers = stack.wait_for("one more worker", lambda: stack.healthy_workers(stack.REPLICAS + 1))
    check_slots(workers, stack.REPLICAS + 1)
    stack.start_workers()
    workers = stack.wait_for("one worker less", stack.healthy_workers)
    check_slots(workers)


def check_upgrade() -> None:
    """A work order under way goes on in workers of a later build, which adopt its agent."""
    order_id = "wo-upgraded"
    stack.septet(stack.running_workers()[0], "run", *order("Totals fail during an upgrade"), "--id", order_id)
    stack.wait_for("a worker that implements the plan", lambda: implementing(order_id))
    before = set(stack.running_workers())
    stack.upgrade(NEXT)
    stack.wait_for("workers of the later build", lambda: before.isdisjoint(stack.running_workers()))
    workers = stack.wait_for("healthy workers", stack.healthy_workers)
    task = stack.wait_for("the end of the work order", lambda: closed(workers[0], order_id))
    owner = next(each for each in workers if runs_of(each, order_id))
    expect_pull_request(owner, task)
    expect_adopted(owner, task)
    seen = json.loads(stack.temporal("workflow", "describe", "--workflow-id", order_id, "--output", "json"))
    version = seen["workflowExecutionInfo"]["versioningInfo"]["deploymentVersion"]["buildId"]
    now = stack.septet(workers[0], "promote")["build"]
    expect(f"{order_id}: ended under the build", version, holds=version == now)


def check_killed(order_id: str, service: str, again: Callable[[str], object], undisturbed: float) -> None:
    """A work order goes on where a container was killed, on the same host and in the same session.

    A worker's successor adopts the agent; a runner's starts one more, which resumes the session.

    Args:
        order_id: The work order.
        service: Whose container is killed: `worker` or `runner`.
        again: Brings a container back in place of the killed one, whose id it gets.
        undisturbed: Seconds of a work order whose container lives.
    """
    stack.septet(
        stack.running_workers()[0], "run", *order(f"Totals fail without prices: {order_id}"), "--id", order_id
    )
    busy = stack.wait_for("a worker that implements the plan", lambda: implementing(order_id))
    place = (stack.slot_of(busy), stack.host_of(busy))
    victim = stack.wait_for("its container", lambda: holder_of(place[0], service))
    stack.shell(victim, f"echo half > {stack.STATE_DIR}/workspaces/{order_id}/{HALF_DONE}")
    stack.docker("kill", victim)
    killed = time.time()
    again(victim)
    stack.wait_for("its successor", lambda: holder_of(place[0], service))
    came_back = time.time() - killed
    successor = stack.wait_for("the slot's worker", lambda: holder_of(place[0], "worker"))
    task = stack.wait_for("the end of the work order", lambda: closed(successor, order_id))
    expect_pull_request(successor, task)
    expect(f"{order_id}: same slot and host id", " ".join(place), holds=place[1] == stack.host_of(successor))
    kept = stack.execute(successor, "git", "-C", ORIGIN, "show", f"{task['branch_name']}:{HALF_DONE}")
    expect(f"{order_id}: written before the kill, in the branch", kept.strip(), holds=kept == "half\n")
    if service == "worker":
        expect_adopted(successor, task)
        note(f"{order_id}: seconds from kill to container", f"{came_back:.1f}")
    else:
        resumed = expect_resumed(successor, task)
        note(f"{order_id}: seconds from kill to container, agent", f"{came_back:.1f}, {resumed - killed:.1f}")
    note(f"{order_id}: seconds lost", f"{seconds_of(task) - undisturbed:.1f} of {seconds_of(task):.1f}")


def expect_adopted(worker: str, task: dict[str, Any]) -> None:
    """No agent was started again: the living one was adopted, or read where it had ended."""
    started = len(runs_of(worker, task["id"]))
    expect(f"{task['id']}: agents started", started, holds=started == STEPS)
    step = next(step for step in task["steps"] if step["step"] == "implement_plan")
    how = step["recovered_by"]
    expect(f"{task['id']}: recovered by", how, holds=how in {"adopt", "read"})


def expect_resumed(worker: str, task: dict[str, Any]) -> float:
    """One more agent was started, in the session of the killed one; return when, in seconds since 1970."""
    records = runs_of(worker, task["id"])
    expect(f"{task['id']}: agents started", len(records), holds=len(records) == STEPS + 1)
    first, second = (record for record in records if record["step"] == "implement_plan")
    step = next(step for step in task["steps"] if step["step"] == "implement_plan")
    how = f"{step['recovered_by']}, session {second['resumed_from']}"
    same = second["resumed_from"] == first["session_id"] == step["session_id"]
    expect(f"{task['id']}: recovered by", how, holds=same and step["recovered_by"] == "resume")
    return datetime.fromisoformat(second["started_at"]).timestamp()


def check_stop(worker: str) -> None:
    """A worker that is asked to stop does so at once and by itself."""
    asked = time.monotonic()
    stack.docker("stop", "--time", "30", worker)
    took = time.monotonic() - asked
    code = stack.docker("inspect", "--format", "{{.State.ExitCode}}", worker).strip()
    expect("an idle worker asked to stop: seconds, exit code", f"{took:.1f}, {code}", holds=code == "0")


def check_health() -> None:
    """Workers that no longer reach the server are told from healthy ones."""
    (worker, *_) = stack.running_workers()
    stack.compose("stop", "--timeout", "5", "temporal")
    stopped = time.monotonic()
    stack.wait_for("an unhealthy worker", lambda: stack.health_of(worker) == "unhealthy")
    note("seconds to unhealthy without a server", f"{time.monotonic() - stopped:.0f}")


def replace(victim: str) -> None:
    """Remove a container and let Compose make another."""
    stack.docker("rm", victim)
    stack.start_workers()


def order(title: str) -> tuple[str, ...]:
    """Return the arguments of a work order."""
    return ("--repo", ORIGIN, "--title", title, "--agent", "scripted")


def expect_pull_request(worker: str, task: dict[str, Any]) -> None:
    """All steps succeeded, and the origin has the branch at the recorded commit, and a pull request for it."""
    done = [step["step"] for step in task["steps"] if step["success"]]
    how = f"{task['status']}, {len(done)} steps"
    expect(f"{task['id']}: end", how, holds=task["status"] == "completed" and len(done) == STEPS)
    branch = stack.execute(worker, "git", "-C", ORIGIN, "rev-parse", f"refs/heads/{task['branch_name']}").strip()
    where = f"{task['branch_name']} at {branch[:12]}"
    expect(f"{task['id']}: branch on the origin", where, holds=branch == task["commit_sha"])
    expect(f"{task['id']}: pull request", task["pr_url"], holds=task["pr_url"].startswith("file://"))


def implementing(order_id: str) -> str | None:
    """Return the worker whose agent is at work on the plan's implementation, when there is one."""
    streams = f"{stack.STATE_DIR}/runs/{order_id}/*-implement_plan-*/stdout.jsonl"
    for worker in stack.running_workers():
        if "tool_use" in stack.shell(worker, f"cat {streams} 2> /dev/null || true"):
            return worker
    return None


def runs_of(worker: str, order_id: str) -> list[dict[str, Any]]:
    """Return the records of a work order's agent runs, in their order."""
    slurp = "import json, sys; print(json.dumps([json.load(open(path)) for path in sys.argv[1:]]))"
    files = f"$(ls {stack.STATE_DIR}/runs/{order_id}/*/run.json 2> /dev/null)"
    found = stack.shell(worker, f"python3 -c '{slurp}' {files}")
    records: list[dict[str, Any]] = json.loads(found)
    return sorted(records, key=lambda record: record["serial"])


def holder_of(slot: str, service: str) -> str | None:
    """Return the running container of a service that has leased a slot."""
    return next((each for each in stack.running(service) if stack.slot_of(each) == slot), None)


def closed(worker: str, order_id: str) -> dict[str, Any] | None:
    """Return the work order when it has come to its end."""
    task: dict[str, Any] = stack.septet(worker, "show", order_id)["task"]
    return task if task["status"] in {"completed", "failed", "cancelled"} else None


def seconds_of(task: dict[str, Any]) -> float:
    """Return how long a closed work order took."""
    created, updated = (datetime.fromisoformat(task[key]) for key in ("created_at", "updated_at"))
    return (updated - created).total_seconds()


if __name__ == "__main__":
    sys.exit(main())
