"""Count the calls between modules in one step, which a reader of the step has to follow.

A real `classify_issue` runs on the parts that every worker has, with budgets and an agent that does almost
nothing, under a profiler in all threads. It runs without a sandbox, so that all machines count the same.
Each call from a module of `activities` or `septet` into another one counts, from the activity down to the agent
and back to the result; constructors and properties count too.

A call goes up where the caller's module does not import the callee's, directly or indirectly: the callee was
passed as a callback. A call of an override goes to where the method was declared, and a generator
expression does not count. The caller of a thread's or task's function is the module that starts it.
`python -m bench.hops` prints the calls in their order.
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
from septet.budgets.account import AccountState, Grant, ReserveCall, SettleCall
from septet.contracts.names import Step, Verdict
from septet.contracts.pauses import QuotaPause
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.settings import Settings
from workers.builds.build_id import imports_of
from workers.registry import Parts, parts_of

MOST_CALLS: Final = 500
MOST_PAIRS: Final = 180
MOST_MODULES: Final = 85
_COUNTED: Final = frozenset({"activities", "septet"})
_REGISTRY: Final = "septet.agents.clis.registry"
_THREADS: Final = "septet.system.threads"
_BEGINNERS: Final = frozenset({_THREADS, "asyncio.threads", "asyncio.tasks", "asyncio.taskgroups"})
"""The modules that begin a thread or a task, whose context is a copy of the caller's."""
_FILES: Final = 10

_GAVE_WORK: ContextVar[str] = ContextVar("gave_work", default="")
"""The module that began the thread or the task."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A call from one module into another."""

    caller: str
    callee: str
    function: str
    declared_in: frozenset[str] = frozenset()
    """The modules whose classes declare the called method, also modules of libraries."""

    @property
    def goes_up(self) -> bool:
        """Return whether no module that declares the function is below the caller in the imports."""
        ours = {self.callee, *filter(_is_counted, self.declared_in)}
        return self.declared_in <= ours and ours.isdisjoint({self.caller, *_modules_below(self.caller)})


@dataclass(frozen=True, slots=True)
class Road:
    """The hops of a step, in order."""

    hops: list[Hop]

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """Return the pairs of modules that call each other."""
        return {(hop.caller, hop.callee) for hop in self.hops}

    @property
    def modules(self) -> set[str]:
        """Return the modules that call or are called."""
        return {module for pair in self.pairs for module in pair}

    @property
    def upward(self) -> list[Hop]:
        """Return the hops that go up."""
        return [hop for hop in self.hops if hop.goes_up]


@dataclass
class Recorder:
    """Records the hops in all threads that begin after it."""

    hops: list[Hop] = field(default_factory=list)
    is_on: bool = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record during the block."""
        self.is_on = True
        sys.setprofile(self.see)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.is_on = False

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call between two modules; the profiler calls this for every event."""
        if not self.is_on or event != "call":
            return
        callee = _module(frame)
        if not (_is_counted(callee) or callee in _BEGINNERS) or _is_resumed(frame) or _is_expression(frame):
            return
        caller = _caller_of(frame)
        if callee in _BEGINNERS and caller not in {"", callee}:
            _GAVE_WORK.set(caller)
        if _is_counted(callee) and caller not in {"", callee}:
            name = frame.f_code.co_name
            self.hops.append(Hop(caller, callee, name, _declared_in(frame, name)))


class NoBudgets:
    """The accounts of an installation without budgets and without paused logins."""

    async def reserve(self, _opening: AccountState, _call: ReserveCall, *, opens: bool) -> Grant | None:  # noqa: ARG002 -- a protocol's
        """Return `None`: the budget does not exist."""
        return None

    async def is_open(self, _scope: str) -> bool:
        """Return false: the budget does not exist."""
        return False

    async def find_pause(self, _login: str) -> QuotaPause | None:
        """Return `None`: the login is not paused."""
        return None

    async def note_pause(self, _login: str, _pause: QuotaPause) -> None:
        """Ignore the pause."""

    async def settle(self, _scope: str, _call: SettleCall) -> None:
        """Ignore the report."""


def measure(pace: Pace) -> list[Figure]:
    """Count the hops of a step, the pairs of modules and the modules, and the hops that go up."""
    road = asyncio.run(road_of_a_step(pace.seed))
    which = "python -m bench.hops: which"
    return [
        Figure("calls between modules of a step", len(road.hops), "calls", MOST_CALLS, note=which),
        Figure("pairs of modules that call each other", len(road.pairs), "pairs", MOST_PAIRS),
        Figure("modules of a step", len(road.modules), "modules", MOST_MODULES),
        Figure("back up", len(road.upward), "calls", 0),
    ]


async def road_of_a_step(seed: int) -> Road:
    """Run a step and return its hops.

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
                sandbox="none",
                environ={**os.environ, "SEPTET_SCRIPTED_PATH": str(AGENT)},
            )
            make_repository(folder / "origin.git", _FILES, seed, settings.git_env)
            async with parts_of(settings, accounts=NoBudgets()) as parts:
                workspace = await _opened(parts, folder / "origin.git")
                with recorder.recording():
                    result = await _classified(parts, workspace)
    finally:
        threading.setprofile(None)
    if result.verdict is not Verdict.DONE:
        raise RuntimeError(f"The step is {result.verdict}: {result.reasons}")
    return Road(recorder.hops)


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
    """Return the counted module that called, also through libraries; empty without a counted module."""
    above = frame.f_back
    while above is not None:
        module = _module(above)
        if _is_counted(module) and (module != _THREADS or _module(frame) == _THREADS):
            return module
        above = above.f_back
    return _GAVE_WORK.get()


def _is_resumed(frame: FrameType) -> bool:
    """Return whether a generator or coroutine is resumed, by the two lowest bits of RESUME's argument."""
    return frame.f_code.co_code[frame.f_lasti + 1] & 3 != 0


def _is_expression(frame: FrameType) -> bool:
    """Return whether a generator expression begins, which calls no function."""
    return frame.f_code.co_name == "<genexpr>"


def _declared_in(frame: FrameType, name: str) -> frozenset[str]:
    owner = frame.f_locals.get("self")
    return frozenset(each.__module__ for each in type(owner).__mro__ if name in vars(each))


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_counted(module: str) -> bool:
    return module.partition(".")[0] in _COUNTED


@cache
def _modules_below(module: str) -> frozenset[str]:
    """Return the counted modules that a module imports, directly or through others."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        names = set(imports_of(Path(sys.modules[name].__file__ or "").read_text(encoding="utf-8")))
        if name == _REGISTRY:  # the registry finds the CLIs by their folders
            names |= {each for each in sys.modules if each.startswith("septet.agents.clis.")}
        for name in names:
            if _is_counted(name) and name in sys.modules and name not in reached:
                reached.add(name)
                waiting.append(name)
    return frozenset(reached)


if __name__ == "__main__":
    road = asyncio.run(road_of_a_step(seed=7))
    for number, hop in enumerate(road.hops, 1):
        print(f"{number:3} {hop.caller} → {hop.callee}.{hop.function}{'  UP' if hop.goes_up else ''}")
    print(f"{len(road.hops)} calls, {len(road.pairs)} pairs, {len(road.modules)} modules, {len(road.upward)} up")
