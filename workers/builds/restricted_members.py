"""What the SDK restricts in workflows, found again in whatever module has imported it."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple

from temporalio.worker.workflow_sandbox import SandboxMatcher, SandboxRestrictions

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
