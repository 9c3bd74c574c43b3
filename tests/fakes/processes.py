"""Processes of the machine, as tests find them."""

import psutil


def processes_with(mark: str) -> list[psutil.Process]:
    """Return the processes that have this word among their arguments."""
    found = []
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
