"""The guard of workflow code: what a replay could not repeat is refused while a workflow runs, wherever it is.

The SDK's sandbox restricts the modules that it imports anew for each run, which costs 43 ms and 945 KB a run; ours
are passed through, and it does not look at what they call. So its own restrictions are planted into the modules
that workflows import: what it restricts is replaced there by its proxies, which refuse while a workflow runs. What
code gets at otherwise, such as a file by `open`, an audit hook refuses.
"""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, Final, NamedTuple

from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError, SandboxMatcher, SandboxRestrictions
from temporalio.worker.workflow_sandbox._restrictions import (
    RestrictedModule,
    RestrictionContext,
    _RestrictedProxy,
    _RestrictionState,
)

from workers.builds.build_id import ROOT, import_closure

_ASKS_THE_DISK: Final = (
    "abspath", "exists", "expanduser", "getatime", "getctime", "getmtime", "getsize", "isdir", "isfile", "islink",
    "ismount", "lexists", "realpath", "relpath", "samefile", "sameopenfile",
)  # fmt: skip
"""Of `os.path`; the rest of it is about names alone."""
_OWNERS: Final = {
    "os": {"os", "posix"},
    "os.path": {"posixpath", "genericpath"},
    "secrets": {"secrets", "random"},
    "threading": {"threading", "thread"},
}
"""Where members of a module come from, if not from the module itself; what it has imported is not its own."""


class RestrictedMember(NamedTuple):
    """A module of the standard library, or something that it has, of which the SDK restricts something."""

    path: str
    value: Any
    """Kept, so that its identity stays its own."""
    matcher: SandboxMatcher
    """What is restricted of it while a workflow runs."""


def find_restricted(value: object) -> RestrictedMember | None:
    """Return what the SDK restricts of a value, by its identity; `None` where that is nothing."""
    known = _restricted_members()
    if (member := known.get(id(value))) is not None or not callable(value):
        return member
    holder = known.get(id(getattr(value, "__self__", None)))  # a method, under a name of its own
    name = str(getattr(value, "__name__", ""))
    if holder is None or (matcher := holder.matcher.child_matcher(name)) is None:
        return None
    return RestrictedMember(f"{holder.path}.{name}", value, matcher)


@cache
def _restricted_members() -> dict[int, RestrictedMember]:
    """Return all that is restricted in the modules that are imported by now, by identity."""
    matchers = dict(_at_run_time(SandboxRestrictions.default.invalid_module_members).children)
    matchers["os"] = replace(matchers["os"], exclude={*matchers["os"].exclude, "path"})
    modules = {name: sys.modules[name] for name in matchers if name in sys.modules}
    members = [each for name, module in modules.items() for each in _members(name, module, matchers[name])]
    members += _members("os.path", modules["os"].path, SandboxMatcher(use=set(_ASKS_THE_DISK), only_runtime=True))
    return {id(each.value): each for each in reversed(members)}


def _members(path: str, module: ModuleType, matcher: SandboxMatcher) -> Iterator[RestrictedMember]:
    """Give a module, the modules below it, and all that is its own, as far as it is restricted."""
    yield RestrictedMember(path, module, matcher)
    for name, value in vars(module).items():
        child, full = matcher.child_matcher(name), f"{path}.{name}"
        if child is None:
            continue
        if isinstance(value, ModuleType):
            if value.__name__ == full:
                yield from _members(full, value, child)
        elif callable(value) and _is_own(path, value):
            yield RestrictedMember(full, value, child)


def _is_own(path: str, value: object) -> bool:
    """Say whether a module's member is its own: `urllib.request` has `urlsplit` from another one."""
    owner = getattr(value, "__module__", None)
    if owner is None:
        return True
    if path in _OWNERS:
        return owner.partition(".")[0].lstrip("_") in _OWNERS[path]
    return f"{owner.lstrip('_')}.".startswith(f"{path}.")


def _at_run_time(matcher: SandboxMatcher) -> SandboxMatcher:
    """Return a matcher that matches while a workflow runs, and not as modules are imported."""
    children = {name: _at_run_time(child) for name, child in matcher.children.items()}
    return replace(matcher, only_runtime=True, children=children)


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
