"""The trial's containers: started, asked, and removed again, by Docker's client and Compose.

`COMPOSE` names another Compose than `docker-compose`, such as `docker compose`.
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
PROJECT = "septet-trial"
COMPOSE = [
    *shlex.split(os.environ.get("COMPOSE", "docker-compose")),
    *("--project-name", PROJECT, "--file", "docker-compose.yml", "--file", "docker/trial/compose.yml"),
]
REPLICAS = 3
NAMESPACE = "agents"
"""One that the server lacks: `register` makes it."""
os.environ["TEMPORAL_NAMESPACE"] = NAMESPACE
STATE_DIR = "/home/septet/state"
WAIT_SECONDS = 180.0


@contextmanager
def containers() -> Iterator[None]:
    """Start everything; at the end remove it, volumes too, after its logs were shown where something failed."""
    try:
        start_workers()
        yield
    except BaseException:
        print(compose("logs", "--no-color", "--tail", "40"), file=sys.stderr)
        raise
    finally:
        compose("down", "--volumes", "--timeout", "5")


def start_workers(replicas: int = REPLICAS) -> None:
    """Bring up what is not up, with all replicas of worker and runner."""
    compose("up", "--detach", "--no-build", "--no-recreate", *_scales(replicas))


def upgrade(version: str) -> None:
    """Replace the workers and the promotion by those of another image; runners keep their agents."""
    os.environ["SEPTET_VERSION"] = version
    compose("up", "--detach", "--no-build", "--no-deps", "--scale", f"worker={REPLICAS}", "worker", "promote")


def replace_all(*overrides: str, replicas: int = REPLICAS) -> None:
    """Replace all workers and runners by those of the files and of more files over them."""
    files = [part for name in overrides for part in ("--file", name)]
    compose(*files, "up", "--detach", "--no-build", "--no-deps", *_scales(replicas), "worker", "runner")


def is_second_compose() -> bool:
    """Return whether Compose is v2, which reads what the first one hands on to the daemon."""
    return not compose("version", "--short").strip().removeprefix("v").startswith("1.")


def _scales(replicas: int) -> list[str]:
    return [part for service in ("worker", "runner") for part in ("--scale", f"{service}={replicas}")]


def running_workers() -> list[str]:
    """Return the ids of the worker containers that run."""
    return running("worker")


def running(service: str) -> list[str]:
    """Return the ids of the containers of a service that run."""
    project = f"label=com.docker.compose.project={PROJECT}"
    return docker(
        "ps", "--quiet", "--filter", project, "--filter", f"label=com.docker.compose.service={service}"
    ).split()


def healthy_workers(replicas: int = REPLICAS) -> list[str]:
    """Return the running workers once all replicas are healthy, and nothing before."""
    workers = running_workers()
    return workers if len(workers) == replicas and {health_of(each) for each in workers} == {"healthy"} else []


def health_of(worker: str) -> str:
    """Return what a container's health check says: starting, healthy or unhealthy."""
    return docker("inspect", "--format", "{{.State.Health.Status}}", worker).strip()


def slot_of(worker: str) -> str:
    """Return the folder that a worker or runner has leased, or nothing while it has none."""
    return shell(worker, f"readlink {STATE_DIR} || true").strip()


def host_of(worker: str) -> str:
    """Return a worker's host id."""
    return execute(worker, "cat", f"{STATE_DIR}/host-id").strip()


def septet(worker: str, *arguments: str) -> dict[str, Any]:
    """Run `septet` in a worker's container and return its answer."""
    answer: dict[str, Any] = json.loads(execute(worker, "septet", *arguments, "--json"))
    return answer


def temporal(*arguments: str) -> str:
    """Run Temporal's own CLI in the server's container and return what it printed."""
    (server,) = running("temporal")
    # By a name, gRPC's own resolver asks for a TXT record first, and waits for it where no DNS server answers.
    return execute(server, "temporal", *arguments, "--namespace", NAMESPACE, "--address", "127.0.0.1:7233")


def shell(worker: str, script: str) -> str:
    """Run a line of shell in a container and return what it printed."""
    return execute(worker, "sh", "-c", script)


def execute(worker: str, *argv: str) -> str:
    """Run a program in a container and return what it printed."""
    return docker("exec", worker, *argv)


def compose(*arguments: str) -> str:
    """Run Compose."""
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
    """Look until something is found.

    Raises:
        TimeoutError: It was not found in three minutes.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.3)
    raise TimeoutError(f"waited {WAIT_SECONDS:.0f} s for {what}")
