"""The only reader of the environment."""

import getpass
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal

import platformdirs
from pydantic import (
    AliasChoices,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from septet.contracts.amounts import BudgetText
from septet.contracts.branch_name import DEFAULT_PREFIX, BranchPrefix
from septet.contracts.names import SandboxChoice, Sessions
from septet.contracts.wording import reason_of
from septet.errors import InvalidInputError
from septet.protected_paths import OnProtected, PathPattern
from septet.system.keys import key_values
from septet.system.masking import hide

_FOR_EVERY_PROCESS: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM")
_FOR_NETWORK: Final = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)
_FOR_GIT: Final = ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO")
_FOR_USER_GIT: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME")
_FOR_LOGINS: Final = ("XDG_CONFIG_HOME", "GH_CONFIG_DIR", "GLAB_CONFIG_DIR", "DBUS_SESSION_BUS_ADDRESS")
MIB: Final = 1024 * 1024
_REPOSITORY_OF_HOST: Final = re.compile(r"[^/\s=]+(/[^/\s=]+){2,}")
_LOGIN_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,40}")
_FORK: Final = re.compile(r"[^/\s=]+(/[^/\s=]+)+")


def _login() -> str:
    """Return the login name of who runs this; an empty string where the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


class Settings(BaseSettings):
    """What a worker or a client is told by its environment: `SEPTET_STATE_DIR` is `state_dir`, and so on."""

    model_config = SettingsConfigDict(env_prefix="SEPTET_", env_ignore_empty=True, frozen=True, extra="ignore")

    state_dir: Path = Field(default_factory=lambda: platformdirs.user_state_path("septet"))
    """Mirrors, worktrees, runs, snapshots and the embedded server's database."""
    agent: str = "claude"
    """The agent for work orders that name none."""
    model: str | None = None
    """The model for work orders that name none; the agent's own default when absent."""
    fallback_agent: str | None = None
    """The agent that takes over where the usage limits of the first one's logins are reached, for work orders that
    name none; nobody does when absent."""
    user: Annotated[str, Field(max_length=200)] = Field(default_factory=_login)
    """Who decides, in the histories of work orders; the user's login name when absent."""
    task_queue: str = "septet"
    """The queue of work orders; every host's own queue takes its name from it."""
    versioning: bool = True
    """Tell the server which build of the workflows a worker runs, so that work orders move over to a later one."""
    build_id: str | None = None
    """What this build is called; the package's version and a hash of its workflows when absent."""
    github_token: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("SEPTET_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "github_token"),
    )
    """The worker's key to GitHub, also read from `GITHUB_TOKEN` and `GH_TOKEN`; agents never see it."""
    github_hosts: Annotated[tuple[str, ...], NoDecode] = ("github.com",)
    """Hosts that speak GitHub's API, separated by commas."""
    github_api_url: str | None = None
    """The API's address, where it is not the one that follows from the host."""
    gitlab_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITLAB_TOKEN", "GITLAB_TOKEN", "gitlab_token")
    )
    """The worker's key to GitLab, also read from `GITLAB_TOKEN`: a person's, a project's or a group's."""
    gitlab_hosts: Annotated[tuple[str, ...], NoDecode] = ("gitlab.com",)
    """Hosts that speak GitLab's API, separated by commas."""
    gitlab_api_url: str | None = None
    """The API's address, where it is not the one that follows from the host."""
    gitea_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITEA_TOKEN", "GITEA_TOKEN", "gitea_token")
    )
    """The worker's key to Gitea or Forgejo, also read from `GITEA_TOKEN`."""
    gitea_hosts: Annotated[tuple[str, ...], NoDecode] = ("codeberg.org", "gitea.com")
    """Hosts that speak Gitea's API, as Forgejo's do, separated by commas."""
    gitea_api_url: str | None = None
    """The API's address, where it is not the one that follows from the host."""
    forks: Annotated[Mapping[str, str], NoDecode] = Field(default_factory=dict)
    """Repositories whose work is pushed to a fork on the same host, separated by commas: `github.com/o/r=me/r`. A
    work order may name another fork."""
    github_app_id: str | None = None
    """The id of a GitHub App that asks in place of a person's token, where none is set."""
    github_app_key_file: Path | None = None
    """The App's private key, a PEM file."""
    forge_logins: Annotated[tuple[Literal["gh", "glab"], ...], NoDecode] = ()
    """Programs whose logins serve where a forge has no token, separated by commas: `gh`, `glab`."""
    github_webhook_secret: SecretStr | None = None
    """What GitHub signs its webhooks with; none are taken when absent."""
    gitlab_webhook_secret: SecretStr | None = None
    """GitLab's signing token (`whsec_…`), or the secret token that it sends; none are taken when absent."""
    gitea_webhook_secret: SecretStr | None = None
    """What Gitea or Forgejo signs its webhooks with; none are taken when absent."""
    trusted_accounts: Annotated[tuple[str, ...], NoDecode] = ()
    """Accounts whose labels, comments and reviews count as if the forge said that they may push, such as those of
    GitHub's Apps, separated by commas: `renovate[bot]`."""
    on_unknown_edits: Literal["wait", "take"] = "wait"
    """What happens to an issue that may have been edited since somebody asked for it, where no forge tells."""
    linear_token: SecretStr | None = None
    """The worker's key to Linear: a personal API key (`lin_api_…`) or an app's token; agents never see it."""
    linear_api_url: str | None = None
    """The address of Linear's API, where it is not Linear's own."""
    linear_webhook_secret: SecretStr | None = None
    """What Linear signs its webhooks with; none are taken when absent."""
    linear_repositories: Annotated[Mapping[str, str], NoDecode] = Field(default_factory=dict)
    """Where the code of an issue lives, by the key of its team or by its project, separated by commas:
    `ENG=https://github.com/o/r`. A project goes before its team."""
    linear_agents: Annotated[Mapping[str, str], NoDecode] = Field(default_factory=dict)
    """Which agent works on an issue where none is named, by the key of its team or by its project, separated by
    commas: `ENG=codex`. A project goes before its team."""
    linear_approve_plan: bool = False
    """Wait for a person after planning, in work orders that begin in Linear."""
    ignored_limit_mib: Annotated[int, Field(ge=0)] = 50
    """Ignored files up to this size in all go into a snapshot."""
    orphan_limit_seconds: Annotated[float, Field(gt=0)] = 1800.0
    """An agent that no worker follows for so long is ended, with a rescue."""
    disk_wait_seconds: Annotated[float, Field(ge=0)] = 3600.0
    """How long a step waits for room on a full disk before its work order fails."""
    checkpoint_remote: str | None = None
    """Where snapshots are kept for when this host is gone: a folder that hosts share, a repository's address, or
    `origin` for hidden refs on the work order's own repository. Without it a host that is gone is waited for."""
    checkpoint_key: SecretStr | None = None
    """A passphrase, the same on all hosts, under which agents' session files go to the checkpoint remote too."""
    seal_keys_file: Path | None = None
    """A file of keys by id, the same for workers and clients, under which all text in Temporal is sealed."""
    seal_keys_command: str | None = None
    """A command that prints the lines of such a file; no shell runs it."""
    codec_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Sites whose pages may have payloads opened by the codec endpoint, such as that of a shared Temporal web UI,
    separated by commas."""
    seal_required: bool = False
    """Workers refuse what is not sealed: then who reaches the server and has no key starts and decides nothing."""
    probe_seconds: Annotated[float, Field(gt=0)] = 60.0
    """A host is silent that nobody has heard of for half of this. Where the server does not tell of workers: how
    long a step runs or waits before its host is asked whether it is there; then ever more rarely."""
    max_agents: Annotated[int, Field(ge=1)] | Literal["auto"] = 20
    """Agents that one worker runs at a time; `auto`: as many of the default agent as the memory holds."""
    cached_workflows: Annotated[int, Field(ge=10)] = 200
    """Workflows that a worker keeps in memory: each takes some 150 KB, and one that is not there is replayed in
    20 ms. The SDK's default of 1,000 takes a worker with thousands of waiting work orders over 300 MB."""
    order_budget: BudgetText | None = None
    """What agents may use for a work order that names no budget, such as `5usd`; no limit when absent."""
    project_budget: BudgetText | None = None
    """What a project has that nobody has set another budget for, such as `100usd/day`; no limit when absent."""
    day_budget: BudgetText | None = None
    """What all agents may use in a day, until `septet budget set day` says otherwise; no limit when absent."""
    follow_budget: BudgetText | None = None
    """What the agents may use that answer what happens on one pull request, such as `2usd`; no limit of their own
    when absent."""
    project_limit: Annotated[int, Field(ge=1)] = 4
    """Triaged work orders of one project that the board lets run at a time."""
    host_limit: Annotated[int, Field(ge=0)] = 20
    """Triaged work orders that the board lets run at a time for each host that serves."""
    drain: bool = False
    """The worker opens no new workspaces, and finishes the work orders that its host has."""
    look_seconds: Annotated[float, Field(gt=0)] = 5.0
    """The first pause between looks at an open pull request, or at what a work order comes after; it doubles."""
    longest_look_seconds: Annotated[float, Field(gt=0)] = 300.0
    """The longest of these pauses."""
    keep_workspaces_days: Annotated[float, Field(ge=0)] = 14.0
    """Days after its work order closed, until a workspace is removed; its last snapshot stays longer."""
    keep_runs_days: Annotated[float, Field(ge=0)] = 30.0
    """Days after its work order closed, until the files of its agent runs are removed."""
    keep_snapshots_days: Annotated[float, Field(ge=0)] = 90.0
    """Days until a snapshot of a work order whose workspace was removed is forgotten."""
    keep_mirrors_days: Annotated[float, Field(ge=0)] = 14.0
    """Days after its last use, until the mirror of a repository of which nothing else is kept is removed."""
    keep_forgotten_days: Annotated[float, Field(gt=0)] = 2.0
    """Days until the vault gives back the room of snapshots that were forgotten."""
    drop_ignored_files: bool = False
    """Ignored files over the limit, which no snapshot holds, may go with their workspace."""
    read_outgoing: bool = False
    """A second agent reads diff and texts before each push, also where a repository does not ask for it."""
    sign_off: bool = False
    """End all commits' messages with the committer's `Signed-off-by`, also where a repository does not ask."""
    sign_commits: bool = False
    """Sign the engine's commits with the worker's own git settings."""
    protected: Annotated[tuple[PathPattern, ...], NoDecode] | None = None
    """Paths whose changes wait for a person before they are pushed, separated by commas, for repositories that
    name none: in place of those that are protected by default."""
    on_protected: OnProtected = "wait"
    """What becomes of such a change where the repository does not say: it waits for a person, goes out in a pull
    request that is opened as a draft, or is refused."""
    branch_prefix: BranchPrefix = Field(
        default_factory=lambda: "" if os.environ.get("SEPTET_BRANCH_PREFIX") == "" else DEFAULT_PREFIX
    )
    """What the branches of work orders begin with, where a repository's settings do not say; empty: agents choose
    the whole names."""
    warm_agents: bool = True
    """Where turns share a session, leave the agent's process running between them, stopped, if its CLI can."""
    sessions: Sessions = "separate"
    """`shared`: the planner's steps of a work order share one session, and the implementor's another one."""
    sandbox: SandboxChoice = "auto"
    """What confines agents: bubblewrap, nothing, or by itself bubblewrap where it can start."""
    guest_paths: Annotated[tuple[str, ...], NoDecode] = ()
    """Files and folders that confined agents and checks see beside their own world, separated by commas; they may
    write where `:rw` follows one."""
    guest_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Hosts that confined agents and checks reach beside an agent's model API, as `name:port`, separated by
    commas."""
    setup_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Hosts that a repository's set-up reaches beside those, and agents and checks do not: registries of
    packages."""
    model_requests: Annotated[tuple[str, ...], NoDecode] = ()
    """What confined agents may ask of a model whose key stays outside, beside what their CLIs ask, as
    `METHOD /path`, separated by commas."""
    guest_network: Literal["proxy", "open"] = "proxy"
    """The network of confined agents and checks: one of their own, with a proxy as the only way out, or the
    machine's."""
    process_limit: Annotated[int, Field(ge=0)] = 2048
    """Processes, with their threads, that an agent or a check may have at a time; 0: no limit."""
    memory_limit_mib: Annotated[int, Field(ge=0)] | None = None
    """Memory that these may have in all; three quarters of what there is where they run when absent, 0: no
    limit."""
    disk_limit_mib: Annotated[int, Field(ge=0)] = 20_480
    """What one agent run or check may write and leave on disk; 0: no limit."""
    tree_limit: Annotated[int, Field(ge=0)] = 1_000_000
    """Files and folders that it may write and leave; 0: no limit."""
    tree_limit_mib: Annotated[int, Field(ge=0)] = 20_480
    """How large the files that it writes and leaves may be together, holes in them included; 0: no limit."""
    file_limit_mib: Annotated[int, Field(ge=0)] = 100
    """How large one file may be that is committed, pushed or kept in a snapshot; 0: no limit."""
    output_limit_mib: Annotated[int, Field(ge=0)] = 1024
    """What it may print; 0: no limit."""
    answer_limit_kib: Annotated[int, Field(ge=1, le=4096)] = 4096
    """Of a longer final text of an agent, at 1024 characters for each KiB, only the end is read."""
    runner: bool = False
    """Agents are started by the `septet runner` of this state directory, and outlive this worker's container."""
    sandboxed: bool = False
    """The worker runs in a container or another sandbox: agents may run as root in it."""
    temporal_ui_url: str | None = None
    """Where Temporal's web UI is, for links from the page; that of `septet up` is known without."""
    api_token: SecretStr | None = None
    """What the HTTP API wants as bearer token: `none` for nothing; that of the state directory when absent."""
    notify_url: SecretStr | None = None
    """Where people are told of work orders that wait for them, failed or are completed; it may hold a key."""
    notify_secret: SecretStr | None = None
    """What these are signed with: the receiver knows it too. In base64 where it begins with `whsec_`."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Events below it are not logged."""
    log_format: Literal["auto", "json", "console"] = "auto"
    """`json`, `console`, or `auto`: console on a terminal."""
    metrics: str | None = None
    """Where a worker serves its metrics for Prometheus, as host:port; nowhere when absent."""
    traces: str | None = None
    """The OpenTelemetry collector that traces are sent to, over HTTP; none when absent."""

    environ: Mapping[str, str] = Field(default_factory=lambda: dict(os.environ), repr=False, exclude=True)
    """The whole environment, of which processes get what their kind is allowed."""

    @field_validator("notify_url")
    @classmethod
    def _is_web_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(("https://", "http://")):
            message = "does not begin with https:// or http://"
            raise ValueError(message)
        return url

    @field_validator("traces")
    @classmethod
    def _is_collector(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("https://", "http://")):
            message = "does not begin with https:// or http://"
            raise ValueError(message)
        return url

    @model_validator(mode="after")
    def _has_a_key_for_its_app(self) -> "Settings":
        if (self.github_app_id is None) != (self.github_app_key_file is None):
            message = "Set both SEPTET_GITHUB_APP_ID and SEPTET_GITHUB_APP_KEY_FILE, or neither"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _has_one_source_of_seal_keys(self) -> "Settings":
        if self.seal_keys_file is not None and self.seal_keys_command is not None:
            message = "SEPTET_SEAL_KEYS_FILE and SEPTET_SEAL_KEYS_COMMAND are both set, and one of them is enough"
            raise ValueError(message)
        if self.seal_required and not self.seals:
            message = "SEPTET_SEAL_REQUIRED needs SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _names_its_logins(self) -> "Settings":
        _ = self.agent_logins
        return self

    @model_validator(mode="after")
    def _signs_what_it_sends(self) -> "Settings":
        if self.notify_url is not None and self.notify_secret is None:
            message = "SEPTET_NOTIFY_URL needs SEPTET_NOTIFY_SECRET, which signs what is sent there"
            raise ValueError(message)
        return self

    @field_validator(
        "guest_paths",
        "guest_hosts",
        "setup_hosts",
        "model_requests",
        "forge_logins",
        "codec_origins",
        "protected",
        "trusted_accounts",
        mode="before",
    )
    @classmethod
    def _split_paths(cls, paths: object) -> object:
        return tuple(path.strip() for path in paths.split(",")) if isinstance(paths, str) else paths

    @field_validator("github_hosts", "gitlab_hosts", "gitea_hosts", mode="before")
    @classmethod
    def _split_at_commas(cls, hosts: object) -> object:
        return tuple(host.strip().lower() for host in hosts.split(",")) if isinstance(hosts, str) else hosts

    @field_validator("forks", mode="before")
    @classmethod
    def _split_forks(cls, forks: object) -> object:
        if not isinstance(forks, str):
            return forks
        pairs = [part.strip().partition("=") for part in forks.split(",") if part.strip()]
        for repository, _, fork in pairs:
            if not _REPOSITORY_OF_HOST.fullmatch(repository.strip()) or not _FORK.fullmatch(fork.strip()):
                message = "is not HOST/OWNER/NAME=OWNER/NAME, with commas between them"
                raise ValueError(message)
        return {repository.strip().lower(): fork.strip() for repository, _, fork in pairs}

    @field_validator("linear_repositories", "linear_agents", mode="before")
    @classmethod
    def _split_teams(cls, choices: object, info: ValidationInfo) -> object:
        if not isinstance(choices, str):
            return choices
        pairs = [part.strip().partition("=") for part in choices.split(",") if part.strip()]
        if not all(name.strip() and choice.strip() for name, _, choice in pairs):
            what = "AGENT" if info.field_name == "linear_agents" else "REPOSITORY"
            message = f"is not TEAM={what}, with commas between them"
            raise ValueError(message)
        return {name.strip().lower(): choice.strip() for name, _, choice in pairs}

    @field_validator("log_level", "log_format", "max_agents", mode="before")
    @classmethod
    def _in_any_case(cls, word: object) -> object:
        return word.lower() if isinstance(word, str) else word

    @field_validator("state_dir")
    @classmethod
    def _expand(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @property
    def seals(self) -> bool:
        """Whether what goes to Temporal is sealed."""
        return self.seal_keys_file is not None or self.seal_keys_command is not None

    @property
    def file_limit_bytes(self) -> int:
        """How large one file may be that is committed, pushed or kept; 0 is no limit."""
        return self.file_limit_mib * MIB

    @property
    def ignored_limit_bytes(self) -> int:
        """What ignored files may take in a snapshot, in all."""
        return self.ignored_limit_mib * MIB

    @property
    def guest_resources(self) -> dict[str, int]:
        """What one guest may use, by the names of an order's limits; 0 is no limit.

        Where the memory is not named, the supervisor takes it from its own machine or container.
        """
        memory = {} if self.memory_limit_mib is None else {"memory_bytes": self.memory_limit_mib * MIB}
        return memory | {
            "processes": self.process_limit,
            "disk_bytes": self.disk_limit_mib * MIB,
            "tree_entries": self.tree_limit,
            "tree_bytes": self.tree_limit_mib * MIB,
            "output_bytes": self.output_limit_mib * MIB,
        }

    @property
    def home(self) -> Path:
        """The home of the user that runs this."""
        return Path(self.environ.get("HOME") or Path.home())

    @cached_property
    def git_env(self) -> dict[str, str]:
        """The environment of engine git, which reads a configuration of the engine's own alone."""
        variables = self._variables(*_FOR_EVERY_PROCESS, *_FOR_NETWORK, *_FOR_GIT)
        return {**variables, "GIT_CONFIG_GLOBAL": str(self.git_configuration), "GIT_CONFIG_NOSYSTEM": "1"}

    @property
    def git_configuration(self) -> Path:
        """What engine git reads in place of the user's configuration; `write_configuration` makes it."""
        return self.state_dir / "gitconfig"

    @property
    def user_git_env(self) -> dict[str, str]:
        """The environment in which git reads the configuration of the user and of the machine."""
        return self._variables(*_FOR_EVERY_PROCESS, *_FOR_USER_GIT)

    @property
    def server_env(self) -> dict[str, str]:
        """The environment of the embedded server, which asks nobody: others can read it as long as that lives."""
        return self._variables(*_FOR_EVERY_PROCESS)

    @property
    def webhook_secrets(self) -> dict[str, str]:
        """By forge: what its webhooks are signed with, where they are taken."""
        secrets = {
            "github": self.github_webhook_secret,
            "gitlab": self.gitlab_webhook_secret,
            "gitea": self.gitea_webhook_secret,
            "linear": self.linear_webhook_secret,
        }
        return {name: secret.get_secret_value() for name, secret in secrets.items() if secret is not None}

    @property
    def forge_login_env(self) -> dict[str, str]:
        """The environment of `gh` and `glab`, which read their own logins."""
        return self._variables(*_FOR_EVERY_PROCESS, *_FOR_LOGINS)

    @cached_property
    def agent_programs(self) -> dict[str, str]:
        """By agent: the path that `SEPTET_<AGENT>_PATH` gives."""
        names = (name for name in self.environ if name.startswith("SEPTET_") and name.endswith("_PATH"))
        return {name[7:-5].lower().replace("_", "-"): self.environ[name] for name in names}

    @property
    def agent_logins(self) -> dict[str, dict[str, Path]]:
        """By agent: its further logins, in order, by name, as `SEPTET_<AGENT>_LOGINS` gives them.

        Raises:
            ValueError: One is not `NAME=PATH`, or two have one name.
        """
        names = (name for name in self.environ if name.startswith("SEPTET_") and name.endswith("_LOGINS"))
        texts = {name: self.environ[name] for name in names if name != "SEPTET_FORGE_LOGINS"}
        return {name[7:-7].lower().replace("_", "-"): _split_logins(name, text) for name, text in texts.items()}

    def _variables(self, *names: str) -> dict[str, str]:
        return {name: self.environ[name] for name in names if name in self.environ}


def _split_logins(variable: str, text: str) -> dict[str, Path]:
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    logins = {name.strip(): Path(path.strip()) for name, _, path in pairs if path.strip()}
    if len(logins) < len(pairs) or not all(_LOGIN_NAME.fullmatch(name) for name in logins):
        message = f"{variable} is not valid: it is not NAME=PATH, with commas between them and each name once"
        raise ValueError(message)
    return logins


def load_settings(sandbox: SandboxChoice | None = None) -> Settings:
    """Read the environment, and have its keys masked from now on; `sandbox` goes before what it says.

    Raises:
        InvalidInputError: A variable is not valid; the message names it.
    """
    try:
        own = Settings()
        hide(key_values(own.environ))
        return own if sandbox is None else own.model_copy(update={"sandbox": sandbox})
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise InvalidInputError(f"{first['ctx']['error']!s}.") from error
        name = str(first["loc"][0]).upper().removeprefix("SEPTET_")
        remedy = f"Correct SEPTET_{name}, and start again."
        raise InvalidInputError(f"SEPTET_{name} is not valid: it {reason_of(first)}.", remedy=remedy) from error
