"""Searches of the machine's processes."""

from collections.abc import Callable

import psutil


def processes_with(mark: str) -> list[psutil.Process]:
    return living(lambda process: mark in process.cmdline())


def living(holds: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if holds(process) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
