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
    """Return the login name of the current user; an empty string if the system knows none."""
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
    """The agent that takes over at the usage limits of the first agent's logins, for work orders that name none;
    no agent does when absent."""
    user: Annotated[str, Field(max_length=200)] = Field(default_factory=_login)
    """The name of the person who decides, for the histories of work orders; the user's login name when absent."""
    task_queue: str = "septet"
    """The queue of work orders; the names of all hosts' queues derive from it."""
    versioning: bool = True
    """Report a worker's build of the workflows to the server, so that work orders move to a later build."""
    build_id: str | None = None
    """The name of this build; the package's version and a hash of its workflows when absent."""
    github_token: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("SEPTET_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "github_token"),
    )
    """The worker's key to GitHub, also read from `GITHUB_TOKEN` and `GH_TOKEN`; agents never see it."""
    github_hosts: Hosts = ("github.com",)
    """Hosts with GitHub's API, separated by commas."""
    github_api_url: str | None = None
    """The API's address, if it does not follow from the host."""
    gitlab_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITLAB_TOKEN", "GITLAB_TOKEN", "gitlab_token")
    )
    """The worker's key to GitLab, also read from `GITLAB_TOKEN`: a person's, a project's or a group's."""
    gitlab_hosts: Hosts = ("gitlab.com",)
    """Hosts with GitLab's API, separated by commas."""
    gitlab_api_url: str | None = None
    """The API's address, if it does not follow from the host."""
    gitea_token: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("SEPTET_GITEA_TOKEN", "GITEA_TOKEN", "gitea_token")
    )
    """The worker's key to Gitea or Forgejo, also read from `GITEA_TOKEN`."""
    gitea_hosts: Hosts = ("codeberg.org", "gitea.com")
    """Hosts with Gitea's or Forgejo's API, separated by commas."""
    gitea_api_url: str | None = None
    """The API's address, if it does not follow from the host."""
    forks: Forks = Field(default_factory=dict)
    """Repositories whose work is pushed to a fork on the same host, separated by commas: `github.com/o/r=me/r`. A
    work order may name another fork."""
    github_app_id: str | None = None
    """The id of a GitHub App, which is used if no token is set."""
    github_app_key_file: Path | None = None
    """The App's private key, a PEM file."""
    forge_logins: Annotated[tuple[Literal["gh", "glab"], ...], NoDecode, BeforeValidator(split_at_commas)] = ()
    """Programs whose logins are used for a forge without a token, separated by commas: `gh`, `glab`."""
    github_webhook_secret: SecretStr | None = None
    """The secret with which GitHub signs its webhooks; no webhook is taken when absent."""
    gitlab_webhook_secret: SecretStr | None = None
    """GitLab's signing token (`whsec_…`), or the secret token that it sends; no webhook is taken when absent."""
    gitea_webhook_secret: SecretStr | None = None
    """The secret with which Gitea or Forgejo signs its webhooks; no webhook is taken when absent."""
    trusted_accounts: Texts = ()
    """Accounts whose labels, comments and reviews count as those of accounts that may push, such as the accounts
    of GitHub's Apps, separated by commas: `renovate[bot]`."""
    on_unknown_edits: Literal["wait", "take"] = "wait"
    """The treatment of an issue that may have been edited since its request, if the forge does not report
    edits."""
    linear_token: SecretStr | None = None
    """The worker's key to Linear: a personal API key (`lin_api_…`) or an app's token; agents never see it."""
    linear_api_url: str | None = None
    """The address of Linear's API, if it is not Linear's own."""
    linear_webhook_secret: SecretStr | None = None
    """The secret with which Linear signs its webhooks; no webhook is taken when absent."""
    linear_repositories: TeamRepositories = Field(default_factory=dict)
    """The repositories of issues, by the key of the team or by the project, separated by commas:
    `ENG=https://github.com/o/r`. A project takes precedence over its team."""
    linear_agents: TeamAgents = Field(default_factory=dict)
    """The agents of issues that name none, by the key of the team or by the project, separated by commas:
    `ENG=codex`. A project takes precedence over its team."""
    linear_approve_plan: bool = False
    """Wait for a person after planning, in work orders that begin in Linear."""
    ignored_limit_mib: Annotated[int, Field(ge=0)] = 50
    """Ignored files go into a snapshot up to this size in all, in MiB."""
    orphan_limit_seconds: Annotated[float, Field(gt=0)] = 1800.0
    """The seconds without a worker after which an agent is ended, with a rescue."""
    disk_wait_seconds: Annotated[float, Field(ge=0)] = 3600.0
    """The seconds that a step waits for room on a full disk before its work order fails."""
    checkpoint_remote: str | None = None
    """The place that keeps snapshots for the loss of this host: a folder that hosts share, a repository's address,
    or `origin` for hidden refs on the work order's own repository. Without it work orders wait for a host that is
    gone."""
    checkpoint_key: SecretStr | None = None
    """A passphrase, the same on all hosts, which seals agents' session files on the checkpoint remote."""
    seal_keys_file: Path | None = None
    """A file of keys by id, the same for workers and clients, with which all text in Temporal is sealed."""
    seal_keys_command: str | None = None
    """A command that prints the lines of such a file; no shell runs it."""
    codec_origins: Texts = ()
    """Sites whose pages may use the codec endpoint to open payloads, such as a shared Temporal web UI, separated
    by commas."""
    seal_required: bool = False
    """Workers refuse unsealed input: a client that reaches the server without a key can start and decide
    nothing."""
    probe_seconds: Annotated[float, Field(gt=0)] = 60.0
    """A host is silent after half of these seconds without a heartbeat. If the server does not list workers: the
    seconds after which the host of a running or waiting step is probed; then ever more rarely."""
    max_agents: Annotated[Annotated[int, Field(ge=1)] | Literal["auto"], BeforeValidator(in_lower_case)] = 20
    """The agents that one worker runs at a time; `auto`: as many of the default agent as the memory holds."""
    cached_workflows: Annotated[int, Field(ge=10)] = 200
    """Workflows that a worker keeps in memory: each takes some 150 KB, and a replay of another one takes 20 ms.
    With the SDK's default of 1,000, a worker with thousands of waiting work orders takes over 300 MB."""
    order_budget: BudgetText | None = None
    """The budget of a work order that names none, such as `5usd`; no limit when absent."""
    project_budget: BudgetText | None = None
    """The budget of a project without a budget of its own, such as `100usd/day`; no limit when absent."""
    day_budget: BudgetText | None = None
    """The budget of all agents in a day, until `septet budget set day` sets another; no limit when absent."""
    follow_budget: BudgetText | None = None
    """The budget of the agents that answer events on one pull request, such as `2usd`; no limit of their own when
    absent."""
    project_limit: Annotated[int, Field(ge=1)] = 4
    """The triaged work orders of one project that the board lets run at a time."""
    host_limit: Annotated[int, Field(ge=0)] = 20
    """The triaged work orders that the board lets run at a time for each host that serves."""
    drain: bool = False
    """The worker opens no new workspaces, and finishes the work orders that its host has."""
    look_seconds: Annotated[float, Field(gt=0)] = 5.0
    """The first pause between two polls of an open pull request, or of work orders that a work order waits for.
    Each later pause is about twice as long."""
    longest_look_seconds: Annotated[float, Field(gt=0)] = 300.0
    """The longest of these pauses."""
    keep_workspaces_days: Annotated[float, Field(ge=0)] = 14.0
    """The days from the end of a work order until its workspace is removed; its last snapshot stays longer."""
    keep_runs_days: Annotated[float, Field(ge=0)] = 30.0
    """The days from the end of a work order until the files of its agent runs are removed."""
    keep_snapshots_days: Annotated[float, Field(ge=0)] = 90.0
    """The days until a snapshot of a work order without a workspace is forgotten."""
    keep_mirrors_days: Annotated[float, Field(ge=0)] = 14.0
    """The days from its last use until the mirror of a repository without other files here is removed."""
    keep_forgotten_days: Annotated[float, Field(gt=0)] = 2.0
    """The days until the vault frees the room of forgotten snapshots."""
    drop_ignored_files: bool = False
    """Whether ignored files over the limit, which no snapshot contains, may be removed with their workspace."""
    read_outgoing: bool = False
    """A second agent reads diff and texts before each push, even if a repository does not request it."""
    sign_off: bool = False
    """End all commits' messages with the committer's `Signed-off-by`, even if a repository does not request it."""
    sign_commits: bool = False
    """Sign the engine's commits with the worker's own git settings."""
    protected: Annotated[tuple[PathPattern, ...] | None, NoDecode, BeforeValidator(split_at_commas)] = None
    """Paths whose changes wait for a person before their push, separated by commas, for repositories that name
    none; they replace the default list."""
    on_protected: OnProtected = "wait"
    """The treatment of such a change, if the repository names none: it waits for a person, goes out in a draft
    pull request, or is refused."""
    warm_agents: bool = True
    """Keep the agent's process, paused, between turns that share a session, if its CLI can."""
    sessions: Sessions = "separate"
    """`shared`: the planner's steps of a work order share one session, and the implementor's steps another."""
    sandbox: SandboxChoice = "auto"
    """The agents' sandbox: bubblewrap, none, or `auto`: bubblewrap where it can start."""
    guest_paths: Texts = ()
    """Files and folders outside of their sandbox that confined agents and checks see, separated by commas; `:rw`
    after a path lets them write there."""
    guest_hosts: Texts = ()
    """Hosts that confined agents and checks reach in addition to an agent's model API, as `name:port`, separated
    by commas."""
    setup_hosts: Texts = ()
    """Hosts that only a repository's set-up reaches in addition, such as registries of packages."""
    model_requests: Texts = ()
    """Requests that confined agents may send to a model whose key stays outside, in addition to those of their
    CLIs, as `METHOD /path`, separated by commas."""
    guest_network: Literal["proxy", "open"] = "proxy"
    """The network of confined agents and checks: their own, with a proxy as the only way out, or the machine's."""
    process_limit: Annotated[int, Field(ge=0)] = 2048
    """The most processes, with their threads, of an agent or a check at a time; 0: no limit."""
    memory_limit_mib: Annotated[int, Field(ge=0)] | None = None
    """The most MiB of memory of an agent or a check with all its processes; three quarters of its machine's memory
    when absent; 0: no limit."""
    disk_limit_mib: Annotated[int, Field(ge=0)] = 20_480
    """The most MiB that one agent run or check may write and leave on disk; 0: no limit."""
    tree_limit: Annotated[int, Field(ge=0)] = 1_000_000
    """The most files and folders that it may write and leave; 0: no limit."""
    tree_limit_mib: Annotated[int, Field(ge=0)] = 20_480
    """The total size, in MiB, of the files that one agent run or check may write and leave. Holes in files count.
    0: no limit."""
    file_limit_mib: Annotated[int, Field(ge=0)] = 100
    """The largest file, in MiB, that may be committed, pushed or kept in a snapshot; 0: no limit."""
    output_limit_mib: Annotated[int, Field(ge=0)] = 1024
    """The most MiB that it may print; 0: no limit."""
    answer_limit_kib: Annotated[int, Field(ge=1, le=4096)] = 4096
    """The longest final text of an agent, at 1024 characters for each KiB; of a longer text only the end is
    read."""
    runner: bool = False
    """The `septet runner` of this state directory starts the agents, which outlive this worker's container."""
    sandboxed: bool = False
    """The worker runs in a container or another sandbox: agents may run as root in it."""
    temporal_ui_url: str | None = None
    """The address of Temporal's web UI, for links from the page; the web UI of `septet up` needs no setting."""
    api_token: SecretStr | None = None
    """The bearer token of the HTTP API; `none` for no token; the state directory's token when absent."""
    notify_url: SecretWebAddress | None = None
    """The address for notifications of work orders that wait for people, failed or are completed; it may contain a
    key."""
    notify_secret: SecretStr | None = None
    """The secret that signs the notifications, which the receiver knows too; in base64 if it begins with
    `whsec_`."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(in_lower_case)] = "info"
    """The lowest level of events in the log."""
    log_format: Annotated[Literal["auto", "json", "console"], BeforeValidator(in_lower_case)] = "auto"
    """`json`, `console`, or `auto`: console on a terminal."""
    metrics: str | None = None
    """The address at which a worker serves its metrics for Prometheus, as host:port; none when absent."""
    traces: WebAddress | None = None
    """The OpenTelemetry collector that receives traces over HTTP; none when absent."""
