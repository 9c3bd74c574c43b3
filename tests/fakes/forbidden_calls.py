"""What workflow code must not do: each call as somebody may write it, and a workflow that makes all of them."""

from collections.abc import Callable, Mapping
from types import ModuleType

from temporalio import workflow
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError

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
"""Imports, and the call."""

PLANTED: dict[str, Callable[[], object]] = {}
"""What the workflow calls."""


def plant_calls(module: ModuleType) -> None:
    """Write all of them into a module, as functions of it that are called by nobody but the workflow here."""
    for number, (what, (imports, call)) in enumerate(CALLS.items()):
        name = f"forbidden_{number}"
        exec(f"{imports}\ndef {name}():\n    return {call}\n", vars(module))  # noqa: S102 -- the calls above
        PLANTED[f"{module.__name__}: {what}"] = vars(module)[name]


@workflow.defn(name="ForbiddenCalls")
class ForbiddenCalls:
    """Makes each call, and tells which of them nobody refused."""

    @workflow.run
    async def run(self) -> list[str]:
        """Return what was allowed."""
        allowed = []
        for what, call in PLANTED.items():
            try:
                call()
            except RestrictedWorkflowAccessError:
                continue
            except Exception as error:  # noqa: BLE001 -- whatever it did, it was not refused
                allowed.append(f"{what}: {error!r}")
            else:
                allowed.append(what)
        return allowed
