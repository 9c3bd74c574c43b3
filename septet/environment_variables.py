"""The environment variables that configure a worker or a client, as fields; `septet.settings` reads them."""

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
    """Return the login name of the current user; an empty string if the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


class SettingFields(BaseSettings):
    """The environment variables as fields: the variable `SEPTET_STATE_DIR` sets `state_dir`, and so on."""

    model_config = SettingsConfigDict(env_prefix="SEPTET_", env_ignore_empty=True, frozen=True, extra="ignore")

    state_dir: Annotated[Path, AfterValidator(absolute)] = Field(
        default_factory=lambda: platformdirs.user_state_path("septet")
    )
    """The folder of mirrors, worktrees, runs, snapshots and the embedded server's database."""
    agent: str = "claude"
    """The agent for work orders that name no agent."""
    model: str | None = None
    """The model for work orders that name no model; the agent's default model when absent."""
    fallback_agent: str | None = None
    """The agent that takes over at the usage limits of the first agent's logins, for work orders that name no
    fallback agent; no agent takes over when absent."""
    user: Annotated[str, Field(max_length=200)] = Field(default_factory=_login)
    """The name of the person who decides, for the histories of work orders; the user's login name when absent."""
    task_queue: str = "septet"
    """The queue of work orders; the names of all hosts' queues derive from it."""
    versioning: bool = True
    """Whether a worker reports its build of the workflows to the server, so that work orders move to a later
    build."""
    build_id: str | None = None
    """The name of this build; the package's version and a hash of its workflows when absent."""
    github_token: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("SEPTET_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "github_token"),
    )
    """The worker's key to GitHub, also read from `GITHUB_TOKEN` and `GH_TOKEN`; agents never see it."""
    github_hosts: Hosts = ("github.com",)
    """The host names in addresses of GitHub servers, separated by commas."""
    github_api_url: str | None = None
    """The API's address, if it does not follow from the repository's address."""
    gitlab_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITLAB_TOKEN", "GITLAB_TOKEN", "gitlab_token")
    )
    """The worker's key to GitLab, also read from `GITLAB_TOKEN`: a token of a person, a project or a group."""
    gitlab_hosts: Hosts = ("gitlab.com",)
    """The host names in addresses of GitLab servers, separated by commas."""
    gitlab_api_url: str | None = None
    """The API's address, if it does not follow from the repository's address."""
    gitea_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITEA_TOKEN", "GITEA_TOKEN", "gitea_token")
    )
    """The worker's key to Gitea or Forgejo, also read from `GITEA_TOKEN`."""
    gitea_hosts: Hosts = ("codeberg.org", "gitea.com")
    """The host names in addresses of Gitea or Forgejo servers, separated by commas."""
    gitea_api_url: str | None = None
    """The API's address, if it does not follow from the repository's address."""
    forks: Forks = Field(default_factory=dict)
    """The repositories whose work is pushed to a fork on the same forge, separated by commas:
    `github.com/o/r=me/r`. A work order may name another fork."""
    github_app_id: str | None = None
    """The id of a GitHub App, which is used if no token is set."""
    github_app_key_file: Path | None = None
    """The PEM file of the App's private key."""
    forge_logins: Annotated[tuple[Literal["gh", "glab"], ...], NoDecode, BeforeValidator(split_at_commas)] = ()
    """The programs whose logins are used for a forge without a token, separated by commas: `gh`, `glab`."""
    github_webhook_secret: SecretStr | None = None
    """The secret with which GitHub signs its webhooks; all GitHub webhooks are refused when absent."""
    gitlab_webhook_secret: SecretStr | None = None
    """GitLab's signing token (`whsec_…`), or the secret token that GitLab sends; all GitLab webhooks are refused
    when absent."""
    gitea_webhook_secret: SecretStr | None = None
    """The secret with which Gitea or Forgejo signs its webhooks; all Gitea and Forgejo webhooks are refused when
    absent."""
    trusted_accounts: Texts = ()
    """The accounts whose labels, comments and reviews count like labels, comments and reviews of accounts that may
    push, such as the accounts of GitHub's Apps, separated by commas: `renovate[bot]`."""
    on_unknown_edits: Literal["wait", "take"] = "wait"
    """The treatment of an issue that may have been edited since its request, if the forge does not report
    edits."""
    linear_token: SecretStr | None = None
    """The worker's key to Linear: a personal API key (`lin_api_…`) or an app's token; agents never see it."""
    linear_api_url: str | None = None
    """The address of Linear's API, if it differs from Linear's public address."""
    linear_webhook_secret: SecretStr | None = None
    """The secret with which Linear signs its webhooks; all Linear webhooks are refused when absent."""
    linear_repositories: TeamRepositories = Field(default_factory=dict)
    """The repositories of issues, by the key of the team or by the project, separated by commas:
    `ENG=https://github.com/o/r`. A project takes precedence over its team."""
    linear_agents: TeamAgents = Field(default_factory=dict)
    """The agents for issues that name no agent, by the key of the team or by the project, separated by commas:
    `ENG=codex`. A project takes precedence over its team."""
    linear_approve_plan: bool = False
    """Whether work orders from Linear wait for a person after planning."""
    ignored_limit_mib: Annotated[int, Field(ge=0)] = 50
    """The most MiB of all ignored files in a snapshot."""
    orphan_limit_seconds: Annotated[float, Field(gt=0)] = 1800.0
    """The seconds without a worker after which an agent is ended and its work is rescued, and after which the work
    orders of a silent host move to another host."""
    disk_wait_seconds: Annotated[float, Field(ge=0)] = 3600.0
    """The seconds that a step waits for space on a full disk before its work order fails."""
    checkpoint_remote: str | None = None
    """The place of the copies of snapshots that survive the loss of this host: a folder that hosts share, a
    repository's address, or `origin` for hidden refs on the work order's own repository. When absent, work orders
    wait for a host that is gone."""
    checkpoint_key: SecretStr | None = None
    """A passphrase, the same on all hosts, which seals agents' session files on the checkpoint remote."""
    seal_keys_file: Path | None = None
    """The file of the keys that seal all text in Temporal, each with its id; workers and clients need the same
    file."""
    seal_keys_command: str | None = None
    """The command that prints the lines of a `seal_keys_file`; Septet runs the command without a shell."""
    codec_origins: Texts = ()
    """The sites whose pages may use the codec endpoint to open payloads, such as a shared Temporal web UI,
    separated by commas."""
    seal_required: bool = False
    """Whether workers refuse unsealed input, so that a client without a key can start and decide nothing."""
    probe_seconds: Annotated[float, Field(gt=0)] = 60.0
    """The seconds after which the host of a running or waiting step is first probed, if the server does not list
    workers; later probes are rarer. With a list, a host counts as silent after half of these seconds without a
    heartbeat."""
    max_agents: Annotated[Annotated[int, Field(ge=1)] | Literal["auto"], BeforeValidator(in_lower_case)] = 20
    """The most agents that one worker runs at a time; `auto`: the number of default agents that fit into the
    memory."""
    cached_workflows: Annotated[int, Field(ge=10)] = 200
    """The most workflows that a worker keeps in memory: each workflow takes some 150 KB, and the replay of a
    workflow that is not kept takes 20 ms. With the SDK's default of 1,000, a worker with thousands of waiting work
    orders takes over 300 MB."""
    order_budget: BudgetText | None = None
    """The budget of a work order that names no budget, such as `5usd`; no limit when absent."""
    project_budget: BudgetText | None = None
    """The budget of a project for which no budget is set, such as `100usd/day`; no limit when absent."""
    day_budget: BudgetText | None = None
    """The budget of all agents in a day, until `septet budget set day` sets another budget; no limit when
    absent."""
    follow_budget: BudgetText | None = None
    """The budget of the agents that answer events on one pull request, such as `2usd`; no separate limit when
    absent."""
    project_limit: Annotated[int, Field(ge=1)] = 4
    """The most triaged work orders of one project that the board lets run at a time."""
    host_limit: Annotated[int, Field(ge=0)] = 20
    """The most triaged work orders that the board lets run at a time for each active host."""
    drain: bool = False
    """Whether the worker opens no new workspaces, and only finishes the work orders of its host."""
    look_seconds: Annotated[float, Field(gt=0)] = 5.0
    """The first pause in seconds between two polls of an open pull request, or of work orders that a work order
    waits for. Each later pause is about twice as long."""
    longest_look_seconds: Annotated[float, Field(gt=0)] = 300.0
    """The longest pause in seconds between two polls."""
    keep_workspaces_days: Annotated[float, Field(ge=0)] = 14.0
    """The days from the end of a work order until its workspace is removed; the last snapshot stays longer."""
    keep_runs_days: Annotated[float, Field(ge=0)] = 30.0
    """The days from the end of a work order until the files of its agent runs are removed."""
    keep_snapshots_days: Annotated[float, Field(ge=0)] = 90.0
    """The days until a snapshot of a work order without a workspace is forgotten."""
    keep_mirrors_days: Annotated[float, Field(ge=0)] = 14.0
    """The days from the last use of a repository's mirror until the mirror is removed, if this host has no other
    files of the repository."""
    keep_forgotten_days: Annotated[float, Field(gt=0)] = 2.0
    """The days until the vault frees the disk space of forgotten snapshots."""
    drop_ignored_files: bool = False
    """Whether ignored files over the limit, which no snapshot contains, may be removed with their workspace."""
    read_outgoing: bool = False
    """Whether a second agent reads diff and texts before each push, even if a repository does not request a
    reader."""
    sign_off: bool = False
    """Whether all commits' messages end with the committer's `Signed-off-by`, even if a repository does not
    request the line."""
    sign_commits: bool = False
    """Whether Septet's commits are signed by the git settings of the worker's user."""
    protected: Annotated[tuple[PathPattern, ...] | None, NoDecode, BeforeValidator(split_at_commas)] = None
    """The paths whose changes wait for a person before the push, separated by commas, for repositories that name
    no paths; these paths replace the default list."""
    on_protected: OnProtected = "wait"
    """The treatment of a change of a protected path, if the repository names no treatment: `wait` for a person,
    open a `draft` pull request, or `refuse` the change."""
    warm_agents: bool = True
    """Whether the agent's process is kept, paused, between turns that share a session, if its CLI can wait."""
    sessions: Sessions = "separate"
    """The use of sessions; `shared`: the planner's steps of a work order share one session, and the implementor's
    steps another session."""
    sandbox: SandboxChoice = "auto"
    """The agents' sandbox: `bwrap` for bubblewrap, `none`, or `auto` for bubblewrap on hosts where it can
    start."""
    guest_paths: Texts = ()
    """The files and folders outside of the sandbox that confined agents and checks may read, separated by commas;
    `:rw` after a path also permits writing."""
    guest_hosts: Texts = ()
    """The network addresses that confined agents and checks may reach in addition to an agent's model API, as
    `name:port`, separated by commas."""
    setup_hosts: Texts = ()
    """The additional network addresses that only a repository's set-up may reach, such as package registries."""
    model_requests: Texts = ()
    """The additional requests that confined agents may send to a model's API if the key stays outside of the
    sandbox, as `METHOD /path`, separated by commas."""
    guest_network: Literal["proxy", "open"] = "proxy"
    """The network of confined agents and checks: `proxy` for a separate network whose only connection is a proxy,
    or `open` for the machine's network."""
    process_limit: Annotated[int, Field(ge=0)] = 2048
    """The most processes, with their threads, of an agent or a check at a time; 0: no limit."""
    memory_limit_mib: Annotated[int, Field(ge=0)] | None = None
    """The most MiB of memory of an agent or a check with all its processes; three quarters of its machine's memory
    when absent; 0: no limit."""
    disk_limit_mib: Annotated[int, Field(ge=0)] = 20_480
    """The most MiB that one agent run or check may write and leave on disk; 0: no limit."""
    tree_limit: Annotated[int, Field(ge=0)] = 1_000_000
    """The most files and folders that one agent run or check may write and leave on disk; 0: no limit."""
    tree_limit_mib: Annotated[int, Field(ge=0)] = 20_480
    """The total size, in MiB, of the files that one agent run or check may write and leave. Holes in files count.
    0: no limit."""
    file_limit_mib: Annotated[int, Field(ge=0)] = 100
    """The largest file, in MiB, that may be committed, pushed or kept in a snapshot; 0: no limit."""
    output_limit_mib: Annotated[int, Field(ge=0)] = 1024
    """The most MiB that one agent run or check may print; 0: no limit."""
    answer_limit_kib: Annotated[int, Field(ge=1, le=4096)] = 4096
    """The longest final text of an agent, at 1024 characters for each KiB; the worker reads only the end of a
    longer text."""
    runner: bool = False
    """Whether the `septet runner` of this state directory starts the agents, which then outlive this worker's
    container."""
    sandboxed: bool = False
    """Whether the worker runs in a container or another sandbox, in which agents may run as root."""
    temporal_ui_url: str | None = None
    """The address of Temporal's web UI, for links from the page; the web UI of `septet up` needs no setting."""
    api_token: SecretStr | None = None
    """The bearer token of the HTTP API; `none` for no token; the state directory's token when absent."""
    notify_url: SecretWebAddress | None = None
    """The address that receives notifications about work orders that wait for people, have failed or are
    completed; the address may contain a key."""
    notify_secret: SecretStr | None = None
    """The secret that signs the notifications, which the receiver needs too; in base64 if it begins with
    `whsec_`."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(in_lower_case)] = "info"
    """The lowest level of events in the log."""
    log_format: Annotated[Literal["auto", "json", "console"], BeforeValidator(in_lower_case)] = "auto"
    """The format of the log: `json`, `console`, or `auto` for `console` on a terminal and otherwise `json`."""
    metrics: str | None = None
    """The address at which a worker serves its metrics for Prometheus, as host:port; no metrics are served when
    absent."""
    traces: WebAddress | None = None
    """The address of the OpenTelemetry collector that receives traces over HTTP; no traces are sent when
    absent."""
