"""The calls between modules that one step takes: whoever reads how a step goes follows each of them.

A `classify_issue` is carried out for real, by an agent that does almost nothing, under a profiler in all threads.
Counted is, on the way from the activity down to the agent and back to the result,

- each call from a module of `activities` into another one, a value's construction and a property among them;
- each call from the core back into `activities`.

A call goes up where the caller's module imports the callee's neither itself nor by others: it was handed in as a
callback. What `septet.system.threads` runs was called by whoever gives it the work. `python -m bench.hops` prints
the calls in their order.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from temporalio.testing import ActivityEnvironment

from bench.figure import Figure
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import AGENT, scratch
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.settings import Settings
from workers.builds.build_id import imports_of
from workers.registry import Parts, parts_of

TARGET = 26
_COUNTED: Final = "activities"
_CORE: Final = "septet"
_THREADS: Final = "septet.system.threads"
_FILES: Final = 10

_GAVE_WORK: ContextVar[str] = ContextVar("gave_work", default="")
"""The module that has work done in a thread; the thread's context is a copy of its own."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A call from one module into another."""

    caller: str
    callee: str
    function: str

    @property
    def goes_up(self) -> bool:
        """Whether the callee is not below the caller, by what their modules import."""
        return self.callee not in _modules_below(self.caller)


@dataclass
class Recorder:
    """Writes the hops down, in all threads that begin after it."""

    hops: list[Hop] = field(default_factory=list)
    is_on: bool = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record for as long as the block lasts."""
        self.is_on = True
        sys.setprofile(self.see)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.is_on = False

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Take a call down, if it is one from module to module; the profiler calls this for every event."""
        callee = _module(frame)
        if not self.is_on or event != "call" or _package(callee) not in {_COUNTED, _CORE} or _is_resumed(frame):
            return
        caller = _caller_of(frame)
        if callee == _THREADS and caller != _THREADS:
            _GAVE_WORK.set(caller)
        if caller != callee and (_package(callee) == _COUNTED) and caller:
            self.hops.append(Hop(caller, callee, frame.f_code.co_name))


def measure(pace: Pace) -> list[Figure]:
    """Count the hops of a step, and those that go up."""
    hops = asyncio.run(hops_of_a_step(pace.seed))
    up = sum(hop.goes_up for hop in hops)
    return [
        Figure("calls between modules of a step", len(hops), "calls", TARGET, note="python -m bench.hops: which"),
        Figure("back up", up, "calls", 0),
    ]


async def hops_of_a_step(seed: int) -> list[Hop]:
    """Carry out a step and return its hops, in their order.

    Raises:
        RuntimeError: The step was not done.
    """
    recorder = Recorder()
    threading.setprofile(recorder.see)
    try:
        with scratch() as folder:
            settings = Settings(
                state_dir=folder / "state",
                agent="scripted",
                environ={**os.environ, "SEPTET_SCRIPTED_PATH": str(AGENT)},
            )
            make_repository(folder / "origin.git", _FILES, seed, settings.git_env)
            async with parts_of(settings) as parts:
                workspace = await _opened(parts, folder / "origin.git")
                with recorder.recording():
                    result = await _classified(parts, workspace)
    finally:
        threading.setprofile(None)
    if result.verdict is not Verdict.DONE:
        raise RuntimeError(f"The step is {result.verdict}: {result.reasons}")
    return recorder.hops


async def _opened(parts: Parts, origin: Path) -> Workspace:
    order = OpenWorkspace(work_order_id="wo-hops", repository=str(origin), title="Count the calls")
    workspace: Workspace = await _environment("open").run(parts.shared["open_workspace"], order)
    return workspace


async def _classified(parts: Parts, workspace: Workspace) -> StepResult:
    call = StepCall(step=Step.CLASSIFY_ISSUE, workspace=workspace, starts_from=workspace.checkpoint)
    result: StepResult = await _environment("classify_issue").run(parts.own["classify_issue"], call)
    return result


def _environment(activity_id: str) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = replace(
        ActivityEnvironment.default_info(),
        workflow_id="wo-hops",
        workflow_run_id="run",
        activity_id=activity_id,
        attempt=1,
    )
    return environment


def _caller_of(frame: FrameType) -> str:
    """Return the module of ours that called, whatever libraries are between; empty where none did."""
    above = frame.f_back
    while above is not None:
        module = _module(above)
        if _package(module) in {_COUNTED, _CORE} and (module != _THREADS or _module(frame) == _THREADS):
            return module
        above = above.f_back
    return _GAVE_WORK.get()


def _is_resumed(frame: FrameType) -> bool:
    """Say whether a generator or coroutine goes on: RESUME says why in the two lowest bits of its argument."""
    return frame.f_code.co_code[frame.f_lasti + 1] & 3 != 0


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _package(module: str) -> str:
    return module.partition(".")[0]


@cache
def _modules_below(module: str) -> frozenset[str]:
    """Return the modules of `activities` that one imports, itself or by others."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        file = sys.modules[waiting.pop()].__file__ or ""
        for name in imports_of(Path(file).read_text(encoding="utf-8")):
            if _package(name) == _COUNTED and name in sys.modules and name not in reached:
                reached.add(name)
                waiting.append(name)
    return frozenset(reached)


if __name__ == "__main__":
    for number, hop in enumerate(asyncio.run(hops_of_a_step(seed=7)), 1):
        print(f"{number:3} {hop.caller} → {hop.callee}.{hop.function}{'  UP' if hop.goes_up else ''}")
