"""The variables of the environment that set a worker or a client; `septet.settings` reads them."""

import getpass
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from septet.contracts.amounts import BudgetText
from septet.contracts.names import SandboxChoice, Sessions
from septet.protected_paths import OnProtected, PathPattern
from septet.setting_values import (
    Forks,
    Hosts,
    SecretWebAddress,
    TeamAgents,
    TeamRepositories,
    Texts,
    WebAddress,
    absolute,
    in_lower_case,
    split_at_commas,
)


def _login() -> str:
    """Return the login name of who runs this; an empty string where the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


class SettingFields(BaseSettings):
    """The variables of the environment: `SEPTET_STATE_DIR` is `state_dir`, and so on."""

    model_config = SettingsConfigDict(env_prefix="SEPTET_", env_ignore_empty=True, frozen=True, extra="ignore")

    state_dir: Annotated[Path, AfterValidator(absolute)] = Field(
        default_factory=lambda: platformdirs.user_state_path("septet")
    )
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
    github_hosts: Hosts = ("github.com",)
    """Hosts that speak GitHub's API, separated by commas."""
    github_api_url: str | None = None
    """The API's address, where it is not the one that follows from the host."""
    gitlab_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITLAB_TOKEN", "GITLAB_TOKEN", "gitlab_token")
    )
    """The worker's key to GitLab, also read from `GITLAB_TOKEN`: a person's, a project's or a group's."""
    gitlab_hosts: Hosts = ("gitlab.com",)
    """Hosts that speak GitLab's API, separated by commas."""
    gitlab_api_url: str | None = None
    """The API's address, where it is not the one that follows from the host."""
    gitea_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITEA_TOKEN", "GITEA_TOKEN", "gitea_token")
    )
    """The worker's key to Gitea or Forgejo, also read from `GITEA_TOKEN`."""
    gitea_hosts: Hosts = ("codeberg.org", "gitea.com")
    """Hosts that speak Gitea's API, as Forgejo's do, separated by commas."""
    gitea_api_url: str | None = None
    """The API's address, where it is not the one that follows from the host."""
    forks: Forks = Field(default_factory=dict)
    """Repositories whose work is pushed to a fork on the same host, separated by commas: `github.com/o/r=me/r`. A
    work order may name another fork."""
    github_app_id: str | None = None
    """The id of a GitHub App that asks in place of a person's token, where none is set."""
    github_app_key_file: Path | None = None
    """The App's private key, a PEM file."""
    forge_logins: Annotated[tuple[Literal["gh", "glab"], ...], NoDecode, BeforeValidator(split_at_commas)] = ()
    """Programs whose logins serve where a forge has no token, separated by commas: `gh`, `glab`."""
    github_webhook_secret: SecretStr | None = None
    """What GitHub signs its webhooks with; none are taken when absent."""
    gitlab_webhook_secret: SecretStr | None = None
    """GitLab's signing token (`whsec_…`), or the secret token that it sends; none are taken when absent."""
    gitea_webhook_secret: SecretStr | None = None
    """What Gitea or Forgejo signs its webhooks with; none are taken when absent."""
    trusted_accounts: Texts = ()
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
    linear_repositories: TeamRepositories = Field(default_factory=dict)
    """Where the code of an issue lives, by the key of its team or by its project, separated by commas:
    `ENG=https://github.com/o/r`. A project goes before its team."""
    linear_agents: TeamAgents = Field(default_factory=dict)
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
    codec_origins: Texts = ()
    """Sites whose pages may have payloads opened by the codec endpoint, such as that of a shared Temporal web UI,
    separated by commas."""
    seal_required: bool = False
    """Workers refuse what is not sealed: then who reaches the server and has no key starts and decides nothing."""
    probe_seconds: Annotated[float, Field(gt=0)] = 60.0
    """A host is silent that nobody has heard of for half of this. Where the server does not tell of workers: how
    long a step runs or waits before its host is asked whether it is there; then ever more rarely."""
    max_agents: Annotated[Annotated[int, Field(ge=1)] | Literal["auto"], BeforeValidator(in_lower_case)] = 20
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
    protected: Annotated[tuple[PathPattern, ...] | None, NoDecode, BeforeValidator(split_at_commas)] = None
    """Paths whose changes wait for a person before they are pushed, separated by commas, for repositories that
    name none: in place of those that are protected by default."""
    on_protected: OnProtected = "wait"
    """What becomes of such a change where the repository does not say: it waits for a person, goes out in a pull
    request that is opened as a draft, or is refused."""
    warm_agents: bool = True
    """Where turns share a session, leave the agent's process running between them, stopped, if its CLI can."""
    sessions: Sessions = "separate"
    """`shared`: the planner's steps of a work order share one session, and the implementor's another one."""
    sandbox: SandboxChoice = "auto"
    """What confines agents: bubblewrap, nothing, or by itself bubblewrap where it can start."""
    guest_paths: Texts = ()
    """Files and folders that confined agents and checks see beside their own world, separated by commas; they may
    write where `:rw` follows one."""
    guest_hosts: Texts = ()
    """Hosts that confined agents and checks reach beside an agent's model API, as `name:port`, separated by
    commas."""
    setup_hosts: Texts = ()
    """Hosts that a repository's set-up reaches beside those, and agents and checks do not: registries of
    packages."""
    model_requests: Texts = ()
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
    notify_url: SecretWebAddress | None = None
    """Where people are told of work orders that wait for them, failed or are completed; it may hold a key."""
    notify_secret: SecretStr | None = None
    """What these are signed with: the receiver knows it too. In base64 where it begins with `whsec_`."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(in_lower_case)] = "info"
    """Events below it are not logged."""
    log_format: Annotated[Literal["auto", "json", "console"], BeforeValidator(in_lower_case)] = "auto"
    """`json`, `console`, or `auto`: console on a terminal."""
    metrics: str | None = None
    """Where a worker serves its metrics for Prometheus, as host:port; nowhere when absent."""
    traces: WebAddress | None = None
    """The OpenTelemetry collector that traces are sent to, over HTTP; none when absent."""
