"""The naive baseline: an activity for each step, with an asyncio subprocess, a pipe, a heartbeat.

`python -m bench.chaos.naive ADDRESS FOLDER` is its worker. Time-outs are those of Septet's side, the retry policy
is Temporal's own; clones lie in the folder.
"""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from septet.system.own_process import end_process
from workers.connection.plugin import SeptetPlugin

with workflow.unsafe.imports_passed_through():
    from bench.chaos.plan import HEARTBEAT_SECONDS
    from septet.contracts.names import Step
    from septet.forges.local.forge import LocalForge
    from septet.forges.values import NewPullRequest
    from septet.system import processes

_IDENTITY = ("-c", "user.name=Naive", "-c", "user.email=naive@septet.invalid")


@workflow.defn(name="NaiveOrder")
class NaiveOrder:
    """A clone and seven steps."""

    @workflow.run
    async def run(self, order: str, origin: str) -> None:
        """Run the steps, one after the other."""
        limit = timedelta(minutes=30)
        await workflow.execute_activity("clone", args=[order, origin], start_to_close_timeout=limit)
        for step in Step:
            await workflow.execute_activity(
                "step",
                args=[order, origin, step.value],
                start_to_close_timeout=limit,
                heartbeat_timeout=timedelta(seconds=HEARTBEAT_SECONDS),
            )


@dataclass(frozen=True, slots=True)
class Activities:
    """The clone and the steps."""

    folder: Path

    @activity.defn(name="clone")
    async def clone(self, order: str, origin: str) -> None:
        """Clone the origin, unless a clone exists."""
        if not (self.folder / order).exists():
            await asyncio.to_thread(_git, self.folder, "clone", "--quiet", origin, order)

    @activity.defn(name="step")
    async def step(self, order: str, origin: str, step: str) -> None:
        """Run the agent, and act on its answer."""
        tree = self.folder / order
        answer = await self._answer(tree, step)
        if step == Step.GENERATE_BRANCH:
            await asyncio.to_thread(_git, tree, "checkout", "--quiet", "-B", answer["branch_name"])
        elif step == Step.CREATE_COMMIT:
            await asyncio.to_thread(_commit_and_push, tree, answer["commit_message"])
        elif step == Step.CREATE_PULL_REQUEST:
            await asyncio.to_thread(_open, tree, Path(origin), order, answer)

    async def _answer(self, tree: Path, step: str) -> dict[str, Any]:
        """Run the agent to its end and return its answer."""
        process = await asyncio.create_subprocess_exec(
            os.environ["SEPTET_SCRIPTED_PATH"],
            *("-p", "--output-format", "stream-json", "--verbose"),
            cwd=tree,
            env={**os.environ, "SEPTET_SCRIPTED_HOME": str(self.folder / "agents")},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            return await _talk(process, f"# {step}\n".encode())
        except asyncio.CancelledError:
            process.kill()
            raise


async def _talk(process: asyncio.subprocess.Process, prompt: bytes) -> dict[str, Any]:
    """Send the agent its prompt, read its stream, and return its answer."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("The agent has no pipe.")
    process.stdin.write(prompt)
    process.stdin.close()
    answer: dict[str, Any] | None = None
    async for line in process.stdout:
        activity.heartbeat()
        event = json.loads(line)
        if event["type"] == "result":
            answer = json.loads(event["result"])
    if await process.wait() or answer is None:
        raise RuntimeError(f"The agent ended with {process.returncode}.")
    return answer


def _commit_and_push(tree: Path, message: str) -> None:
    _git(tree, "add", "--all")
    _git(tree, *_IDENTITY, "commit", "--quiet", "--allow-empty", "--message", message)
    _git(tree, "push", "--quiet", "origin", "HEAD")


def _open(tree: Path, origin: Path, order: str, answer: dict[str, Any]) -> None:
    head = _git(tree, "branch", "--show-current").strip()
    forge = LocalForge(origin, env=dict(os.environ))
    forge.open_pull_request(
        NewPullRequest(head=head, base="main", title=answer["title"], body=answer["body"], marker=order)
    )


def _git(folder: Path, *args: str) -> str:
    done = processes.run(["git", *args], env=os.environ, cwd=folder)
    if done.exit_code != 0:
        raise RuntimeError(f"git {' '.join(args)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


async def serve(address: str, folder: Path) -> None:
    """Serve until SIGTERM."""
    client = await Client.connect(address, plugins=[SeptetPlugin()])
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    steps = Activities(folder)
    async with Worker(client, task_queue="naive", workflows=[NaiveOrder], activities=[steps.clone, steps.step]):
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
    end_process(0)
