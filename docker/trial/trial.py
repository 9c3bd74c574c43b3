"""Put two work orders through worker containers; the container of the second one is killed in the middle.

Needs a Docker daemon that has the image `septet:latest`, and docker-compose: `COMPOSE` names another command, such
as `docker compose`. It leaves no container and no volume behind. `scripts/container-trial` brings all of that.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = [
    *shlex.split(os.environ.get("COMPOSE", "docker-compose")),
    *("--project-name", "septet-trial", "--file", "docker-compose.yml", "--file", "docker/trial/compose.yml"),
]
REPLICAS = 3
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
STEPS = 7
WAIT_SECONDS = 180.0


def main() -> int:
    """Run the trial and return the exit code."""
    with containers():
        workers = wait_for("healthy workers", healthy_workers)
        check_image(workers[0])
        check_slots(workers)
        compose("run", "--rm", "--no-deps", "--user", "0", "--entrypoint", "sh", "worker", "-c", MAKE_ORIGIN)
        check_first(workers[0])
        check_killed(workers[0], "wo-killed")
        check_stop(healthy_workers()[-1])
    say(f"the container trial passed with {compose('version', '--short').strip()}")
    return 0


@contextmanager
def containers() -> Iterator[None]:
    """Start everything; at the end remove it, after its logs were shown where something failed."""
    try:
        compose("up", "--detach", "--no-build", "--scale", f"worker={REPLICAS}")
        yield
    except BaseException:
        print(compose("logs", "--tail", "40"), file=sys.stderr)
        raise
    finally:
        compose("down", "--volumes", "--timeout", "5")


def check_image(worker: str) -> None:
    """No root, an init, no build tools."""
    expect(execute(worker, "id", "-u").strip() == "10001", "the worker is not root")
    expect(execute(worker, "cat", "/proc/1/comm").strip() == "tini", "its first process is an init")
    found = execute(worker, "sh", "-c", f"for tool in {' '.join(BUILD_TOOLS)}; do command -v $tool || true; done")
    # The public Python image brings a pip of its own, outside of the application.
    expect(set(found.split()) <= {"/usr/local/bin/pip"}, "the last stage has no build tools")


def check_slots(workers: list[str]) -> None:
    """Each replica has a state directory and a host id of its own."""
    expect(len(workers) == REPLICAS, f"{REPLICAS} workers are healthy")
    expect(len({slot_of(worker) for worker in workers}) == REPLICAS, "each has a slot of its own")
    hosts = {execute(worker, "cat", "/home/septet/state/host-id") for worker in workers}
    expect(len(hosts) == REPLICAS, "each has a host id of its own")


def check_first(worker: str) -> None:
    """A work order ends in a pull request."""
    order = ("--repo", ORIGIN, "--title", "Totals leave out the first price", "--agent", "scripted")
    task = septet(worker, "run", *order, "--id", "wo-first", "--wait")["task"]
    expect(task["status"] == "completed", "the first work order is completed")
    expect([step["success"] for step in task["steps"]] == [True] * STEPS, "by all seven steps")
    expect_pull_request(worker, task)


def check_killed(worker: str, order_id: str) -> None:
    """A work order whose container is killed is taken up by the slot's next container, and ends the same way."""
    order = ("--repo", ORIGIN, "--title", "Totals fail without prices", "--agent", "scripted")
    septet(worker, "run", *order, "--id", order_id)
    victim = wait_for("a worker that implements the plan", lambda: implementing(order_id))
    slot = slot_of(victim)
    docker("kill", victim)
    docker("rm", victim)
    killed = time.monotonic()
    compose("up", "--detach", "--no-build", "--no-recreate", "--scale", f"worker={REPLICAS}", "worker")
    (successor,) = wait_for("its successor", lambda: [each for each in running_workers() if slot_of(each) == slot])
    expect(successor != victim, f"another container has taken up slot {slot.rsplit('/', 1)[-1]}")
    task = wait_for("the end of the work order", lambda: closed(successor, order_id))
    say(f"it ended {time.monotonic() - killed:.0f} s after the kill: {summary(task)}")
    expect(task["status"] == "completed", "the work order whose container was killed is completed")
    expect_pull_request(successor, task)


def check_stop(worker: str) -> None:
    """A worker that is asked to stop does so at once and by itself."""
    asked = time.monotonic()
    docker("stop", "--time", "30", worker)
    code = docker("inspect", "--format", "{{.State.ExitCode}}", worker).strip()
    expect(code == "0", f"an idle worker stops by itself in {time.monotonic() - asked:.1f} s")


def expect_pull_request(worker: str, task: dict[str, Any]) -> None:
    """The origin has the branch at the recorded commit, and one pull request for it."""
    branch = execute(worker, "git", "-C", ORIGIN, "rev-parse", f"refs/heads/{task['branch_name']}").strip()
    expect(branch == task["commit_sha"], f"its branch {task['branch_name']} is on the origin at its commit")
    expect(task["pr_url"].startswith("file://"), f"its pull request is {task['pr_url']}")


def implementing(order_id: str) -> str | None:
    """Return the worker whose agent is at work on the plan's implementation, when there is one."""
    for worker in running_workers():
        runs = execute(
            worker, "sh", "-c", f"cat /home/septet/state/runs/{order_id}/*-implement_plan-*/stdout.jsonl || true"
        )
        if "tool_use" in runs:
            return worker
    return None


def closed(worker: str, order_id: str) -> dict[str, Any] | None:
    """Return the work order when it has come to its end."""
    task: dict[str, Any] = septet(worker, "show", order_id)["task"]
    return task if task["status"] in {"completed", "failed", "cancelled"} else None


def summary(task: dict[str, Any]) -> str:
    """Say how each step came to its end."""
    return ", ".join(
        f"{step['step']} {step['attempts']}x {step['recovered_by'] or ''}".strip() for step in task["steps"]
    )


def slot_of(worker: str) -> str:
    """Return the folder that a worker has leased, or nothing while it has none."""
    return execute(worker, "sh", "-c", "readlink /home/septet/state || true").strip()


def running_workers() -> list[str]:
    """Return the ids of the worker containers that run."""
    project = "label=com.docker.compose.project=septet-trial"
    return docker(
        "ps", "--quiet", "--filter", project, "--filter", "label=com.docker.compose.service=worker"
    ).split()


def healthy_workers() -> list[str]:
    """Return the running workers once their health checks have passed, and nothing before."""
    workers = running_workers()
    states = [docker("inspect", "--format", "{{.State.Health.Status}}", worker).strip() for worker in workers]
    return workers if len(workers) == REPLICAS and set(states) == {"healthy"} else []


def septet(worker: str, *arguments: str) -> dict[str, Any]:
    """Run `septet` in a worker's container and return its answer."""
    answer: dict[str, Any] = json.loads(execute(worker, "septet", *arguments, "--json"))
    return answer


def execute(worker: str, *argv: str) -> str:
    """Run a program in a container and return what it printed."""
    return docker("exec", worker, *argv)


def compose(*arguments: str) -> str:
    """Run docker-compose."""
    return run(*COMPOSE, *arguments)


def docker(*arguments: str) -> str:
    """Run Docker's client."""
    return run("docker", *arguments)


def run(*argv: str) -> str:
    """Run a program to its end and return what it printed; what it complained of is shown when it fails."""
    done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, argv)
    return done.stdout


def wait_for(what: str, look: Callable[[], Found | None]) -> Found:
    """Look until something is found."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.3)
    raise TimeoutError(f"waited {WAIT_SECONDS:.0f} s for {what}")


def expect(holds: bool, what: str) -> None:
    """Go on when it holds; say so."""
    if not holds:
        raise AssertionError(f"not so: {what}")
    say(what)


def say(what: str) -> None:
    """Report."""
    print(f"trial: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
