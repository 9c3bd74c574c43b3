"""The interface of a CLI's adapter, which starts the CLI for a turn and reads the CLI's output stream."""

import os
import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.models import ModelPlace
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord, Outcome, StreamProgress
from septet.agents.outcomes.transcript import Transcript
from septet.contracts.facts import Usage
from septet.contracts.order import Tools
from septet.errors import AgentMissingError
from septet.system.keys import is_key

FOR_EVERY_AGENT: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TERM", "XDG_*",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "RUSTUP_HOME", "PYENV_ROOT", "RBENV_ROOT", "NODENV_ROOT", "NVM_DIR", "FNM_DIR", "VOLTA_HOME", "ASDF_DATA_DIR",
    "MISE_DATA_DIR", "SDKMAN_DIR",
)  # fmt: skip
"""The variables that every agent gets; a name that ends with `*` is a prefix. No forge's key is among them.

The last variables, from `RUSTUP_HOME`, name the folders of the toolchains in `guest/toolchains.py`."""

_ACCOUNT_OF_PROXY: Final = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*://)?)[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Turn:
    """The prompt and options of one start of an agent."""

    prompt: str
    worktree: Path
    session_id: str | None = None
    """The id for a new session, a UUID, for a CLI that accepts an id."""
    resume_id: str | None = None
    for_new_session: str = ""
    """The text that follows the prompt in a new session; a resumed session has the text already."""
    about_session: bool = False
    """Whether the prompt is about the resumed session's work; a new session could not answer such a prompt."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer, for a CLI that accepts a schema."""
    tools: Tools = "all"
    model: str | None = None
    """The model; `None` for the CLI's own default."""
    max_turns: int | None = None
    max_usd: float | None = None
    """The cost, in US dollars, at which the CLI itself ends the turn; for a CLI that knows its cost."""
    warm: bool = False
    """Whether to keep the process for the workspace's next turn; a CLI without this ability ignores the field."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The command line, environment and stdin with which a program starts."""

    argv: tuple[str, ...]
    """The command line, without secrets and without the prompt, because everyone on the machine can read it."""
    env: Mapping[str, str] = field(repr=False)
    """The whole environment."""
    stdin: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about a worker's machine, for adapters."""

    env: Mapping[str, str] = field(repr=False)
    """The worker's environment; agents get the variables of an allow-list."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """The paths in the variables `SEPTET_<AGENT>_PATH`, by the agent's name."""
    sandboxed: bool = False
    uid: int = field(default_factory=os.getuid)


class Dialect(Protocol):
    """Reads the stream of one run while the stream grows."""

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, which may be cut anywhere."""

    @property
    def progress(self) -> StreamProgress:
        """The progress of the run, as far as its stream was read."""

    def outcome(self, end: ExitRecord, stderr: str) -> Outcome:
        """Return the outcome of the run, after the whole stream was fed."""


@dataclass(frozen=True, slots=True)
class Adapter(ABC):
    """What Septet needs to start a CLI and to read its output."""

    name: str
    capabilities: Capabilities
    new_dialect: Callable[[], Dialect]
    transcript: Callable[[], Transcript]
    """A function that returns a new reader, which turns a stream into a transcript for people."""
    program: str
    login: tuple[str, ...] = ()
    """The variables with which the CLI logs in; a name that ends with `*` is a prefix."""
    quiet: Mapping[str, str] = field(default_factory=dict)
    """Variables that Septet sets: no telemetry, no updates, few retries."""

    @abstractmethod
    def arguments(self, turn: Turn, host: Machine) -> Sequence[str]:
        """Return the arguments of the program for `turn`.

        Raises:
            AgentError: The CLI cannot work on this host; the remedy says what to change.
        """

    def environment(self, turn: Turn, host: Machine) -> dict[str, str]:
        """Return the whole environment of the CLI for `turn`.

        Raises:
            AgentError: A variable of the worker cannot be used; the remedy says what to change.
        """
        del turn
        return {**select_variables(host.env, (*FOR_EVERY_AGENT, *self.login)), **self.quiet}

    def invocation(self, turn: Turn, host: Machine) -> Invocation:
        """Return the command line, environment and stdin of the CLI for `turn`; stdin has the prompt.

        Raises:
            AgentMissingError: The CLI's program was not found.
            AgentError: The CLI cannot work on this host; the remedy says what to change.
        """
        program = find_program(self.name, self.program, host)
        arguments, env = self.arguments(turn, host), self.environment(turn, host)
        # No CLI takes the text for its own command: `/init` would be executed.
        text = f"Your task:\n\n{turn.prompt}" if turn.prompt.lstrip().startswith("/") else turn.prompt
        return Invocation((program, *arguments), env, text.encode("utf-8", errors="replace"))

    def provider_of(self, host: Machine, model: str | None) -> str:
        """Return the provider of `model`; empty if the provider is unknown, or if the CLI has only one."""
        del host, model
        return ""

    def keys_of(self, host: Machine, provider: str) -> dict[str, str]:
        """Return the CLI's keys for a provider, by variable; for an empty `provider`, return all keys."""
        del provider
        env = select_variables(host.env, self.login)
        return {name: key for name, key in env.items() if key and is_key(name, key)}

    def model_places(self, invocation: Invocation, host: Machine) -> tuple[ModelPlace, ...]:
        """Return the model APIs whose addresses and keys Septet can replace in an invocation.

        An address is empty if the CLI itself chooses the address. A missing key is empty.
        """
        del host
        env = invocation.env
        return tuple(
            ModelPlace(
                each.address,
                env.get(each.address) or each.usual_address,
                {name: env.get(name, "") for name in each.keys},
                each.requests,
            )
            for each in self.capabilities.model_variables
        )

    def asked_hosts(self, invocation: Invocation, host: Machine) -> Collection[str]:
        """Return the network hosts to which the CLI itself connects for its model and its login.

        The result is empty if a key of the CLI's model stays outside the sandbox, because the CLI then connects
        only to a port on the sandbox's loopback.
        """
        kept = any(place.is_kept for place in self.model_places(invocation, host))
        return () if kept else self.capabilities.model_hosts

    def named_addresses(self, invocation: Invocation, host: Machine) -> Sequence[str] | None:
        """Return the settings of the worker that contain the addresses of models, as texts.

        `None`: any setting of the CLI, and any of `own_variables`, may contain an address of a model.
        """
        del invocation, host
        return None

    def move_models(self, invocation: Invocation, places: Sequence[ModelPlace]) -> Invocation:
        """Return the invocation with the model addresses and keys of `places`."""
        env = dict(invocation.env)
        for place in places:
            env[place.name] = place.address
            env |= {name: key for name, key in place.keys.items() if env.get(name)}
        return replace(invocation, env=env)

    def dialect(self, before: Usage = NO_USAGE) -> Dialect:
        """Return a reader for a new run's stream; `before` is the usage of earlier runs of the session.

        Most CLIs report the usage of the run alone; their readers ignore `before`.
        """
        del before
        return self.new_dialect()


def option(name: str, value: str | None) -> tuple[str, ...]:
    """Return an option and its value as arguments; no arguments if the value is `None`."""
    return () if value is None else (name, value)


def find_program(agent: str, program: str, host: Machine) -> str:
    """Return the path of an agent's program: from `SEPTET_<AGENT>_PATH`, from PATH, or next to this Python.

    Raises:
        AgentMissingError: The program was not found.
    """
    variable = f"SEPTET_{agent.upper().replace('-', '_')}_PATH"
    configured = host.programs.get(agent)
    if configured:
        path = shutil.which(Path(configured).expanduser())
        if path is None:
            raise AgentMissingError(
                f"{variable} names {configured}, which is not an executable program.",
                remedy=f"Start the worker (`septet up`) again with {variable} corrected, or without it and with "
                f"`{program}` on PATH.",
            )
        return str(Path(path).absolute())
    places = (host.env.get("PATH", os.defpath), str(Path(sys.executable).parent))
    path = shutil.which(program, path=os.pathsep.join(places))
    if path is None:
        raise AgentMissingError(
            f"The program `{program}` of the agent {agent} is not on PATH.",
            remedy=f"Install it where the worker (`septet up`) runs, or restart that with its path in {variable}.",
        )
    return str(Path(path).absolute())


def own_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `env` that `FOR_EVERY_AGENT` does not name."""
    usual = select_variables(env, FOR_EVERY_AGENT)
    return {name: value for name, value in env.items() if name not in usual}


def select_variables(env: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the variables of `env` that `names` allows; a name that ends with `*` is a prefix.

    In the addresses of proxies, user and password are left out, because only the worker may log in there.
    """
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return {
        name: _ACCOUNT_OF_PROXY.sub(r"\1", value) if name.lower().endswith("_proxy") else value
        for name, value in env.items()
        if name in exact or (prefixes and name.startswith(prefixes))
    }
