"""The table of `septet`'s commands, in the order of the help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

_ORDER: Final = "wo-42"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRow:
    """One command: its help text, and where its function and its options are defined."""

    place: str = ""
    """The module and the function of the command; empty for a group of subcommands."""
    options: str = ""
    """The module and the class of the command's arguments and options. The help and usage errors import no other
    module of the command."""
    summary: str
    example: str = ""
    """The help's example: the arguments after the command's name, or a whole line that contains `septet`."""
    notes: str = ""
    """A paragraph of the help, between the summary and the example."""
    commands: "Mapping[str, CommandRow]" = field(default_factory=dict)
    serves: bool = False
    """Whether the command is a service that runs until it is stopped; its errors go to its log."""
    has_keys: bool = False
    """Whether the command reads keys from its environment; its process then hides them from other processes."""

    def text(self, whole: str) -> str:
        """Return the command's summary, notes and example; `whole` is the full name, such as `septet pr merge`."""
        example = self.example if " septet " in f" {self.example}" else f"{whole} {self.example}".rstrip()
        return "\n\n".join(filter(None, (self.summary, self.notes, f"Example: {example}" if self.place else "")))


def _row(place: str, options: str, summary: str, example: str = "", **more: Any) -> CommandRow:  # noqa: ANN401 -- fields
    place, options = f"clients.cli.{place}", f"clients.cli.{options}"
    return CommandRow(place=place, options=options, summary=summary, example=example, **more)


_PIPELINE: Final = "pl-1f0c9a2b"
_PIPELINES: Final = {
    "show": _row("pipelines.commands:show", "pipelines.options:OnePipelineOptions", "Show one pipeline: where each issue is, with its commit, pull request and reason.", _PIPELINE),
    "list": _row("pipelines.commands:list_pipelines", "pipelines.options:PipelinesOptions", "List the pipelines, open ones first.", ""),
    "results": _row("pipelines.commands:results", "pipelines.options:OnePipelineOptions", "Show what was planned and what was carried out so far, as two JSON documents.", f"{_PIPELINE} --json"),
    "report": _row("pipelines.commands:report", "pipelines.options:OnePipelineOptions", "Show the report on a pipeline that is over, as Markdown.", f"{_PIPELINE} > report.md"),
    "pause": _row("pipelines.commands:pause", "pipelines.options:DecideOnPipelineOptions", "Start nothing new until you resume it.", _PIPELINE),
    "resume": _row("pipelines.commands:resume", "pipelines.options:DecideOnPipelineOptions", "Continue after a pause.", _PIPELINE),
    "skip": _row("pipelines.commands:skip", "pipelines.options:SkipOptions", "Skip an issue, and the issues that depend on it.", f"{_PIPELINE} 42 --why 'done by hand'"),
    "replan": _row("pipelines.commands:replan", "pipelines.options:ReplanOptions", "Plan an issue again before it is implemented.", f"{_PIPELINE} 42 --why 'Leave the schema as it is.'"),
    "stop": _row("pipelines.commands:stop", "pipelines.options:DecideOnPipelineOptions", "Finish the running issues and start no others.", _PIPELINE),
    "cancel": _row("pipelines.commands:cancel", "pipelines.options:DecideOnPipelineOptions", "Stop all agents now; a rescue keeps their work.", _PIPELINE),
}  # fmt: skip
_INTAKES: Final = {
    "add": _row("start.intakes:add", "start.options:AddIntakeOptions", "Start a work order for each open issue with a label, now and from now on.", "--repo https://github.com/o/r --label septet"),
    "list": _row("start.intakes:list_intakes", "start.options:IntakesOptions", "List the intakes.", ""),
    "remove": _row("start.intakes:remove", "start.options:RemoveIntakeOptions", "Stop taking issues; work orders that have started continue.", "septet-intake-o-r-1f0c9a2b-9c3d1e"),
}  # fmt: skip
_ISSUES: Final = {
    "add": _row("decide.local_forge:add_issue", "decide.options:AddIssueOptions", "Add an issue.", "--title 'Totals are wrong' --body 'add(1, 2) gives -1'"),
    "list": _row("decide.local_forge:list_issues", "decide.options:LocalListOptions", "List the open issues.", ""),
    "show": _row("decide.local_forge:show_issue", "decide.options:OneIssueOptions", "Show an issue with its comments.", "1"),
    "close": _row("decide.local_forge:close_issue", "decide.options:OneIssueOptions", "Close an issue.", "1"),
}  # fmt: skip
_BUDGETS: Final = {
    "list": _row("decide.budgets:list_budgets", "decide.options:BudgetsOptions", "Show the budgets: what was used, and how many work orders wait.", ""),
    "show": _row("decide.budgets:show", "decide.options:OneBudgetOptions", "Show one budget: its limit, what was used by step and day, and who waits.", "day"),
    "set": _row("decide.budgets:set_budget", "decide.options:SetBudgetOptions", "Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room.", "project/o/r 20usd/day"),
    "raise": _row("decide.budgets:raise_budget", "decide.options:RaiseBudgetOptions", "Raise a budget by an amount; work orders that wait for it continue.", "wo-42 5usd"),
}  # fmt: skip
_PULLS: Final = {
    "list": _row("decide.local_forge:list_pull_requests", "decide.options:LocalListOptions", "List the open pull requests.", ""),
    "show": _row("decide.local_forge:show_pull_request", "decide.options:OnePullRequestOptions", "Show a pull request: title, branches, state and text.", "1"),
    "diff": _row("decide.local_forge:diff_pull_request", "decide.options:OnePullRequestOptions", "Show what a pull request changes, paged and in colours on a terminal.", "1"),
    "merge": _row("decide.local_forge:merge_pull_requests", "decide.options:PullRequestsOptions", "Merge pull requests into their base, and bring a clean checkout of the base along.", "1 2"),
    "close": _row("decide.local_forge:close_pull_requests", "decide.options:PullRequestsOptions", "Close pull requests without a merge; their branches stay.", "1"),
}  # fmt: skip
_RESCUES: Final = {
    "list": _row("decide.rescues:list_rescues", "decide.options:RescuesOptions", "List the rescues on this host.", _ORDER),
    "restore": _row("decide.rescues:restore", "decide.options:RestoreOptions", "Restore a snapshot, bit for bit, to a new folder. Its `.git` has no hooks or settings of an agent.", "wo-42/0007-rescue --to /tmp/back"),
}  # fmt: skip
GROUPS: Final[Mapping[str, Mapping[str, CommandRow]]] = {
    "Start": {
        "run": _row("start.run:run", "start.options:RunOptions", "Start a work order: an issue becomes a pull request.", "https://github.com/o/r/issues/42 --wait"),
        "create": _row("start.run:create", "start.options:CreateOptions", "Put a work order on the board; it starts later.", "--title 'Totals are wrong' --priority 5 --after wo-41"),
        "pipeline": _row("pipelines.commands:pipeline", "pipelines.options:StartPipelineOptions", "Work on many issues: one agent plans them, another implements the plans.", "--repo https://github.com/o/r --issues 1,2,3 --wait", commands=_PIPELINES),
        "intake": CommandRow(summary="Turn issues with a label into work orders.", commands=_INTAKES),
        "demo": _row("start.demo:demo", "start.options:DemoOptions", "Try Septet: turn an issue of a sample repository into a pull request.", "--scenario crash", has_keys=True),
        "issue": CommandRow(summary="Add, list, show and close issues of a repository on this machine.", commands=_ISSUES),
        "init": _row("start.init:init", "start.options:InitOptions", "Write a first .septet/septet.toml for a repository."),
    },
    "Watch": {
        "watch": _row("watch.follow:watch", "watch.options:OneOrderOptions", "Watch a work order live until it ends: steps, tool calls, tokens, plan and changes.", _ORDER),
        "show": _row("watch.view_commands:show", "watch.options:OneOrderOptions", "Show one work order: why it waits, its progress and its result.", _ORDER),
        "list": _row("watch.view_commands:list_orders", "watch.options:OrdersOptions", "List work orders, open ones first.", "--state failed --since 7d"),
        "board": _row("watch.view_commands:board", "watch.options:BoardOptions", "Show the work orders by stage.", "--project o/r --follow"),
        "logs": _row("watch.follow:logs", "watch.options:LogsOptions", "Show what the agents of a work order said and did.", "wo-42 --follow"),
        "plan": _row("watch.view_commands:plan", "watch.options:OneOrderOptions", "Show the plan of a work order.", _ORDER),
        "diff": _row("watch.view_commands:diff", "watch.options:OneOrderOptions", "Show all changes of a work order so far, paged and in colour on a terminal.", _ORDER),
        "steps": _row("watch.view_commands:steps", "watch.options:OneOrderOptions", "Show each step in full: result, session, tokens, files and warnings.", "wo-42 --json"),
        "costs": _row("watch.view_commands:costs", "watch.options:CostsOptions", "Show what agents have cost: dollars, tokens and minutes; costs of the last five minutes may be missing.", "--by week --project o/r"),
        "open": _row("watch.open:open_in_browser", "watch.options:OpenOptions", "Open the board, or a work order, in your browser.", _ORDER),
    },
    "Decide": {
        "approve": _row("decide.decide:approve", "decide.options:ApproveOptions", "Approve the plan or the findings of a work order, or the plans of several.", _ORDER),
        "reject": _row("decide.decide:reject", "decide.options:RejectOptions", "Reject the plan or the findings of a work order: the agent tries again with your feedback.", "wo-42 --feedback 'Round the total, not each item.'"),
        "cancel": _row("decide.decide:cancel", "decide.options:CancelOptions", "Stop work orders and keep their work in rescues.", _ORDER),
        "move": _row("decide.decide:move", "decide.options:MoveOptions", "Move a work order on the board.", "wo-42 triaged --why 'next in line'"),
        "budget": CommandRow(summary="Show, set and raise budgets.", commands=_BUDGETS),
        "pr": CommandRow(summary="List, show, merge and close pull requests of a repository on this machine.", commands=_PULLS),
    },
    "Recover": {
        "retry": _row("decide.decide:retry", "decide.options:RetryOptions", "Continue work orders that failed, were cancelled, are blocked or ended with their plan.", "wo-42 --from implement_plan"),
        "refresh": _row("watch.view_commands:refresh", "watch.options:OneOrderOptions", "Check now what a work order waits for: its pull request, host or predecessors.", _ORDER),
        "rescue": CommandRow(summary="List and restore saved work.", commands=_RESCUES),
        "doctor": _row("doctor.doctor:doctor", "options:DoctorOptions", "Check this machine: what is missing, and how to fix it.", "--repo ."),
        "docs": _row("decide.docs:docs", "decide.options:DocsOptions", "Show a page of the documentation, or list all pages.", "commands"),
        "host-gone": _row("serve.upkeep:host_gone", "serve.options:HostGoneOptions", "Declare a host dead, so that its work orders and pipelines continue elsewhere.", "3f9a2c71d0be", notes="What its agents did since the last checkpoint may be paid for twice."),
    },
    "Serve": {
        "up": _row("serve.up:up", "serve.options:UpOptions", "Run server, worker, page and HTTP API in this terminal, until Ctrl-C.", has_keys=True),
        "worker": _row("serve.worker:worker", "serve.options:WorkerOptions", "Run a worker for a shared Temporal server, until SIGTERM.", "TEMPORAL_ADDRESS=temporal:7233 septet worker", has_keys=True, serves=True),
        "serve": _row("serve.serve:serve", "serve.options:ServeOptions", "Serve the page and the HTTP API, until SIGTERM. `septet up` serves them too.", "--address temporal:7233", has_keys=True, serves=True),
        "mcp": _row("serve.mcp:mcp", "serve.options:McpOptions", "Give work orders to an agent as tools, over stdin and stdout (the Model Context Protocol).", "claude mcp add septet -- septet mcp", has_keys=True),
        "runner": _row("serve.runner:runner", "serve.options:RunnerOptions", "Start agents for workers that come and go, until SIGTERM.", "septet runner & SEPTET_RUNNER=true septet worker", serves=True),
        "promote": _row("serve.upkeep:promote", "serve.options:PromoteOptions", "Choose the workers' build that gets the work orders of a shared server.", "--ramp 10"),
        "backup": _row("serve.upkeep:backup", "serve.options:BackupOptions", "Copy this host's state directory, with the embedded server's database, while it runs.", "/backups/2026-11-25"),
        "codec": CommandRow(summary="Make keys that encrypt what Temporal keeps.", commands={
            "new-key": _row("serve.upkeep:new_key", "serve.options:NewKeyOptions", "Print a new key as a line for the file that SEPTET_SEAL_KEYS_FILE names.", "2026-11 >> seal-keys"),
        }),
    },
}  # fmt: skip
"""The commands by purpose, the most used first."""
SEPTET: Final = CommandRow(
    summary="Turn an issue into a pull request with a coding-agent CLI, as a durable Temporal workflow.",
    commands={name: command for group in GROUPS.values() for name, command in group.items()},
)
HELP: Final = ("-h", "--help")
EXIT_CODES: Final = (
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 server not reached, 5 refused, 6 already running, "
    "130 interrupted."
)


def find_command(words: Sequence[str]) -> tuple[CommandRow, list[str]]:
    """Return the command that a command line begins with, and the words that name the command."""
    found, path = SEPTET, []
    for word in words:
        if word not in found.commands:
            break
        found = found.commands[word]
        path.append(word)
    return found, path


def load(place: str) -> Any:  # noqa: ANN401 -- whatever is there
    """Import and return the object at `place`, such as `clients.cli.watch.view_commands:board`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
