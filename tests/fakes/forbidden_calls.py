"""The calls that workflow code must not make: each under an alias, and a finder of such calls in a module's text."""

import ast
from collections.abc import Callable, Iterator, Mapping

from temporalio import workflow
from temporalio.worker.workflow_sandbox import (
    RestrictedWorkflowAccessError,
    SandboxRestrictions,
)

CALLS: Mapping[str, tuple[str, str]] = {
    "the time": ("from datetime import datetime as now_of", "now_of.now()"),
    "the time, by its module": ("import datetime as dates", "dates.datetime.now()"),
    "the time, by another name": ("from datetime import datetime\nright_now = datetime.now", "right_now()"),
    "the day": ("from datetime import date as day", "day.today()"),
    "the clock": ("import time as clock", "clock.time()"),
    "the clock's function": ("from time import monotonic as ticks", "ticks()"),
    "a pause": ("import time as clock", "clock.sleep(0)"),
    "chance": ("import random as chance", "chance.random()"),
    "chance's function": ("from random import randint as dice", "dice(1, 6)"),
    "a new id": ("import uuid as ids", "ids.uuid4()"),
    "a secret": ("from secrets import token_hex as secret", "secret(4)"),
    "the environment": ("import os as system", "system.environ.get('HOME')"),
    "a process id": ("import os as system", "system.getpid()"),
    "a folder": ("from os import listdir as names_in", "names_in('/')"),
    "whether a file is there": ("import os.path as paths", "paths.exists('/etc/hosts')"),
    "whether a path is there": ("from pathlib import Path as Place", "Place('/etc/hosts').exists()"),
    "a file": ("", "open('/etc/hosts')"),
    "a file's text": ("from pathlib import Path as Place", "Place('/etc/hosts').read_text()"),
    "a program": ("import subprocess as programs", "programs.run(['true'])"),
    "a connection": ("import socket as network", "network.socket()"),
    "a thread": ("import threading as threads", "threads.Thread(target=print)"),
    "a temporary folder": ("from tempfile import mkdtemp as new_folder", "new_folder()"),
    "a tree's end": ("import shutil as trees", "trees.rmtree('/nowhere')"),
    "a page": ("from urllib.request import urlopen as get", "get('http://127.0.0.1:1')"),
}

_READS_THE_DISK = frozenset({
    "abspath", "exists", "expanduser", "getatime", "getctime", "getmtime", "getsize", "isdir", "isfile", "islink",
    "ismount", "lexists", "realpath", "relpath", "samefile", "sameopenfile",
})  # fmt: skip
"""The functions of `os.path` that read the disk; its other functions compute with names."""
_BUILTINS = frozenset({"open", "input", "breakpoint"})


def planted_calls() -> str:
    return "".join(
        f"{imports}\ndef forbidden_{number}():\n    return {call}\n"
        for number, (imports, call) in enumerate(CALLS.values())
    )


def find_forbidden(code: str) -> Iterator[str]:
    tree = ast.parse(code)
    names = dict(_imported_names(tree))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner:
            path = _path_of(node, names)
            if _is_forbidden(path):
                yield ".".join(path)


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                whole = tuple(each.name.split("."))
                yield (each.asname, whole) if each.asname else (whole[0], whole[:1])
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                yield each.asname or each.name, (*node.module.split("."), each.name)


def _path_of(node: ast.expr, names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the full name of an attribute, also through calls; empty if it begins with a local value."""
    if isinstance(node, ast.Call):
        return _path_of(node.func, names)
    if isinstance(node, ast.Attribute):
        owner = _path_of(node.value, names)
        return (*owner, node.attr) if owner else ()
    if isinstance(node, ast.Name):
        return names.get(node.id, (node.id,) if node.id in _BUILTINS else ())
    return ()


def _is_forbidden(path: tuple[str, ...]) -> bool:
    if path[:2] == ("os", "path"):
        return path[2:3] != () and path[2] in _READS_THE_DISK
    if path[:1] and path[0] in _BUILTINS:
        return True
    matcher = SandboxRestrictions.invalid_module_members_default.child_matcher(*path) if path else None
    return matcher is not None and matcher.match_self


@workflow.defn(name="ForbiddenCalls")
class ForbiddenCalls:
    """Makes each call, and returns the calls that were not refused."""

    @workflow.run
    async def run(self) -> list[str]:
        allowed = []
        for what, call in _FUNCTIONS.items():
            try:
                call()
            except RestrictedWorkflowAccessError:
                continue
            except Exception as error:  # noqa: BLE001 -- whatever the call did, it was not refused
                allowed.append(f"{what}: {error!r}")
            else:
                allowed.append(what)
        return allowed


exec(planted_calls(), globals())  # noqa: S102 -- the calls above
_FUNCTIONS: Mapping[str, Callable[[], object]] = {
    what: globals()[f"forbidden_{number}"] for number, what in enumerate(CALLS)
}
