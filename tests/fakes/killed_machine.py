"""A machine whose `septet up` is killed and started again; its agents survive."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from fakes.septet_command import Running, Septet


@contextmanager
def running_machine(septet: Septet) -> Iterator["Machine"]:
    """Run `septet up` during the block, however often it is killed; agents survive a kill."""
    with ExitStack() as stack:
        yield Machine(septet, stack, stack.enter_context(septet.up()))


class Machine:
    def __init__(self, septet: Septet, stack: ExitStack, up: Running) -> None:
        self._septet, self._stack, self._up = septet, stack, up

    def kill(self) -> None:
        self._up.kill()

    def start(self) -> None:
        self._up = self._stack.enter_context(self._septet.up())
