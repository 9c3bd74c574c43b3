"""All ways in which Septet starts a guest, for the same trial with canaries around the guest."""

import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fakes.agent_lab import Lab
from fakes.guests import CANARY
from fakes.repositories import make_origin
from fakes.runners import Runner
from fakes.step_lab import StepLab

from septet.agents.guest.description import World
from septet.agents.guest.paths import NamedPath
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.connections import RUNNER_LOCK
from septet.agents.sandbox.guest_run import GuestCommand, GuestRunner
from septet.agents.sandbox.sandbox import Sandbox, find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.turn_runs import TurnResult
from septet.settings import Settings
from workers.registry import parts_of

SECRETS = ("state/api-token", "state/workspaces/wo-2/secret", ".ssh/id_ed25519", ".netrc")
"""Files that no guest may read, below a lab's folder, which is also the user's home."""
_PROBE = """
found = []
for name in {names!r}:
    try:
        found.append(open(os.path.join({root!r}, name)).read().strip())
    except OSError as error:
        found.append(error.strerror)
for pid in (name for name in os.listdir("/proc") if name.isdecimal()):
    try:
        found += [word for word in open("/proc/" + pid + "/environ").read().split(chr(0)) if "canary" in word]
    except OSError as error:
        found.append(error.strerror)
found = " ".join(found).replace(chr(34), "")
"""
"""Reads the secrets, and the environment of every visible process."""

Trial = Callable[[Lab], Awaitable[str]]


@dataclass(frozen=True)
class GuestKind:
    name: str
    attack: str
    probe: Trial
    of_runner: bool = False

    async def trial(self, lab: Lab, runner: Runner) -> str:
        """Run the probe as the guest, which a runner starts for some kinds."""
        if self.of_runner:
            runner.start()
            runs = Runs(lab.runtime.runs.root, runner.folder / RUNNER_LOCK)
            lab.runtime = replace(lab.runtime, runs=runs, supervisors=Supervisors(runner=runner.folder))
        return await self.probe(lab)


def plant_canaries(lab: Lab) -> None:
    for name in SECRETS:
        path = lab.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANARY, encoding="utf-8")


def confine(lab: Lab) -> Sandbox:
    """Confine a lab's guests as the product does, and return the sandbox; its agent and journal stay visible."""
    names = (lab.root / "agent", lab.root / "journal", lab.root)
    for path in names[:2]:
        path.touch()
    state = lab.root / "state"
    named = (NamedPath(names[0]), NamedPath(names[1], writable=True))
    sandbox = find_sandbox("auto", os.environ, World(lab.root, named, (state,)))
    lab.runtime = replace(lab.runtime, sandbox=sandbox)
    return sandbox


def _probe(lab: Lab) -> str:
    return _PROBE.format(names=SECRETS, root=str(lab.root))


def _text_of(turn: TurnResult) -> str:
    assert turn.outcome.text is not None, turn.outcome
    return turn.outcome.text


async def _in_agent(lab: Lab) -> str:
    lab.agent(f"init()\n{_probe(lab)}\nturn('m1'); result(found)")
    return _text_of(await lab.run_turn())


async def _in_resumed_agent(lab: Lab) -> str:
    lab.agent(f"init(); turn('m1')\nif not resumed: os._exit(9)\n{_probe(lab)}\nresult(found)")
    return _text_of(await lab.run_turn())


async def _in_warm_process(lab: Lab) -> str:
    lab.warm_agent(f"{_probe(lab)}\nturn('m%d' % number); result(found)")
    return _text_of(await lab.run_turn(lab.warm_turn(1)))


async def _in_second_turn(lab: Lab, order: str = "wo-1") -> str:
    """Run the probe in the second turn of a process, which is of another work order in a lane."""
    lab.warm_agent(f"{_probe(lab)}\nturn('m%d' % number); result(found if number == 2 else 'first')")
    first = await lab.run_turn(lab.warm_turn(1))
    later = lab.warm_turn(2, first.outcome.session_id)
    return _text_of(await lab.run_turn(replace(later, key=replace(later.key, workflow_id=order))))


async def _in_check(lab: Lab) -> str:
    script = lab.worktree / "check.sh"
    script.write_text(_script(lab), encoding="utf-8")
    runtime = lab.runtime
    folder = runtime.runs.folder_of("wo-1")
    folder.mkdir(parents=True, exist_ok=True)
    lock = runtime.runs.lock_writer("wo-1")
    assert lock is not None
    try:
        runner = GuestRunner(runtime.runs, runtime.supervisors, runtime.sandbox, folder / "checks", None, lock)
        return runner.run(GuestCommand(("sh", str(script)), {"PATH": os.defpath}, lab.worktree, 20.0)).output
    finally:
        os.close(lock)


async def _in_setup(lab: Lab) -> str:
    """Let a worker of the lab's state directory open a workspace whose repository has a set-up."""
    settings = Settings(
        state_dir=lab.root / "state",
        agent="scripted",
        sandbox="auto" if lab.runtime.sandbox.confines else "none",
        runner=lab.runtime.runs.runner is not None,
        environ={
            "PATH": os.environ["PATH"],
            "HOME": str(lab.root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "SEPTET_SCRIPTED_PATH": str(Path(sys.executable).parent / "septet-scripted-agent"),
        },
    )
    origin = make_origin(lab.root / "origins")
    origin.push({".septet/septet.toml": 'setup = ["sh set-up.sh"]\n', "set-up.sh": _script(lab)})
    async with parts_of(settings) as parts:
        await StepLab(lab.root, origin, parts).open()
        record = parts.host.state.runs / "wo-1" / "setup" / "1"
        return (record / "stdout.jsonl").read_text(encoding="utf-8")


def _script(lab: Lab) -> str:
    reads = "; ".join(f"cat {lab.root / name} 2>&1" for name in SECRETS)
    return f"grep -aho {CANARY} /proc/[0-9]*/environ; {reads}\nexit 0\n"


KINDS = (
    GuestKind("agent", "an agent: read keys on the disk and in the worker's environment", _in_agent),
    GuestKind("resumed-agent", "an agent that is started again after a crash: the same", _in_resumed_agent),
    GuestKind("warm-process", "a process that is kept for further turns: the same", _in_warm_process),
    GuestKind("second-turn", "such a process in a later turn: the same", _in_second_turn),
    GuestKind(
        "lane",
        "the process of a pipeline's lane in the next work order's turn: the same",
        partial(_in_second_turn, order="wo-2"),
    ),
    GuestKind("agent-of-runner", "an agent that a runner starts: the same", _in_agent, of_runner=True),
    GuestKind("warm-of-runner", "a kept process that a runner starts: the same", _in_warm_process, of_runner=True),
    GuestKind("check", "a repository's check: the same", _in_check),
    GuestKind("check-of-runner", "a check that a runner starts: the same", _in_check, of_runner=True),
    GuestKind("set-up", "a repository's set-up command: the same", _in_setup),
    GuestKind("set-up-of-runner", "a set-up command that a runner starts: the same", _in_setup, of_runner=True),
)


def kind_attacks() -> tuple[tuple[str, str], ...]:
    return tuple((each.attack, "a guest's world is around each of them") for each in KINDS)
