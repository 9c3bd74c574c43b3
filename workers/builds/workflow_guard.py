"""The guard of workflow code: what a replay could not repeat is refused while a workflow runs, wherever it is.

The SDK's sandbox restricts the modules that it imports anew for each run, which costs 43 ms and 945 KB a run; ours
are passed through, and it does not look at what they call. So its own restrictions are planted into the modules
that workflows import: what it restricts is replaced there by its proxies, which refuse while a workflow runs. What
code gets at otherwise, such as a file by `open`, an audit hook refuses.
"""

import asyncio
import sys
from functools import cache
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, Final

from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError
from temporalio.worker.workflow_sandbox._restrictions import (
    RestrictedModule,
    RestrictionContext,
    _RestrictedProxy,
    _RestrictionState,
)

from workers.builds.build_id import ROOT, import_closure
from workers.builds.restricted_members import find_restricted

_REFUSED_EVENTS: Final = frozenset({
    "open", "subprocess.Popen", "time.sleep", "builtins.input", "builtins.breakpoint", "sqlite3.connect",
})  # fmt: skip
_REFUSED_KINDS: Final = ("os.", "socket.", "shutil.", "tempfile.", "urllib.", "fcntl.", "glob.", "pathlib.")
_ALLOWED: Final = frozenset({
    "linecache", "tokenize", "traceback", "logging", "weakref",
    "importlib", "importlib._bootstrap", "importlib._bootstrap_external",
})  # fmt: skip
"""Modules that read files for stack traces and imports, or clean up for others, whoever runs meanwhile."""


class GuardedWorkflowRunner(UnsandboxedWorkflowRunner):
    """Runs workflows as they are imported, with the guard over all that they import."""

    def prepare_workflow(self, defn: workflow._Definition) -> None:
        """Install the guard."""
        super().prepare_workflow(defn)
        install_guard()


@cache
def install_guard() -> None:
    """Guard the modules of the workflows, for as long as the process lives."""
    for module in [import_module(name) for name in import_closure(ROOT)]:
        guard_module(module)
    sys.addaudithook(_refuse_event)


def guard_module(module: ModuleType) -> None:
    """Replace what the SDK restricts among a module's globals by proxies that refuse while a workflow runs."""
    members = vars(module)
    for name, value in list(members.items()):
        guarded = _guard(value)
        if guarded is not value:
            members[name] = guarded


class _RunningWorkflow(RestrictionContext):
    """What tells the SDK's proxies that a workflow runs."""

    @property
    def is_runtime(self) -> bool:
        return workflow.in_workflow()

    @is_runtime.setter
    def is_runtime(self, value: bool) -> None:
        """Take no note: it is the SDK's own initial value."""


class _GuardedModule(RestrictedModule):
    """A module that is itself outside of workflows."""

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the module has
        if workflow.in_workflow():
            return _guard(super().__getattribute__(name))
        return getattr(_RestrictionState.from_proxy(self).obj, name)


class _GuardedMember(_RestrictedProxy):
    """A class or a function that is itself outside of workflows."""

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 -- whatever it has
        if workflow.in_workflow():
            return super().__getattribute__(name)
        return getattr(_RestrictionState.from_proxy(self).obj, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- whatever it takes and gives
        if workflow.in_workflow():
            return super().__call__(*args, **kwargs)
        member: Any = _RestrictionState.from_proxy(self).obj
        return member(*args, **kwargs)


_CONTEXT: Final = _RunningWorkflow()


def _guard(value: Any) -> Any:  # noqa: ANN401 -- whatever a module has
    """Return what stands for a value in guarded modules: itself, where the SDK restricts nothing of it."""
    if issubclass(type(value), _RestrictedProxy) or (restricted := find_restricted(value)) is None:
        return value
    if isinstance(value, ModuleType):
        return _GuardedModule(value, _CONTEXT, restricted.matcher)
    return _GuardedMember(restricted.path, value, _CONTEXT, restricted.matcher)


def _refuse_event(event: str, args: tuple[object, ...]) -> None:
    """Refuse what workflow code does to files, processes and the network, however it got at them.

    Raises:
        RestrictedWorkflowAccessError: It would not be the same in a replay.
    """
    del args
    if event not in _REFUSED_EVENTS and not event.startswith(_REFUSED_KINDS):
        return
    if not _is_in_workflow() or workflow.unsafe.is_sandbox_unrestricted():
        return
    if _is_asked_by_workflow(sys._getframe(1)):  # noqa: SLF001 -- there is no other way to the caller
        raise RestrictedWorkflowAccessError(event)


def _is_in_workflow() -> bool:
    """Say whether this thread runs a workflow; most threads that open files have no event loop at all."""
    return asyncio._get_running_loop() is not None and workflow.in_workflow()  # noqa: SLF001 -- raises nothing


def _is_asked_by_workflow(frame: FrameType | None) -> bool:
    """Say whether workflow code asks for it, and not a stack trace, an import or the end of somebody's object."""
    closure = import_closure(ROOT)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module in _ALLOWED or frame.f_code.co_name == "__del__":
            return False
        if module in closure:
            return True
        frame = frame.f_back
    return False
