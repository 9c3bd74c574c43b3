"""`septet up`: the server, its web UI, a worker and the HTTP API in one terminal."""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, Final

from clients.cli.doctor.machine_checks import SCENARIO, check_scenario
from clients.cli.serve.options import UpOptions
from clients.cli.terminal.output import print_json, say
from clients.cli.terminal.reply import CommandReply
from clients.cli.terminal.serving import StopSignals, reply_at_stop, septet_elsewhere, show_page_link
from clients.operations.operations import Operations
from clients.page.key import api_token, page_host
from clients.temporal.comment_commands import comment_decisions
from clients.temporal.intakes import intakes_of
from clients.temporal.work_orders import OrderFilter, WorkOrders
from septet.contracts.names import Status
from septet.contracts.seal import CODEC_PATH
from septet.contracts.task import Task
from septet.errors import SeptetError
from septet.settings import Settings, load_settings
from septet.state import StateDir
from septet.system.masking import preview
from workers.connection.connection import connect
from workers.connection.plugin import serving_options
from workers.observing.logs import set_up_logs
from workers.recovery.strays import end_living
from workers.server.ports import Ports, UiAddress
from workers.server.server import embedded_server
from workers.server.server_file import ServerFile
from workers.worker import running_worker

_CLOCK: Final = len("00:00:00  ")
_AT_ONCE: Final = 200


class WorkOrderLines:
    """Makes the lines that `septet up` prints about work orders."""

    def __init__(self, since: datetime) -> None:
        """Set the time of the start; a work order that ended before `since` gets no line."""
        self._since = since
        self._statuses: dict[str, Status] = {}
        self._questions: dict[str, str] = {}

    def new_lines(self, tasks: Iterable[Task]) -> Iterator[str]:
        """Yield a line for each work order that changed since the last call, the oldest work order first."""
        for task in sorted(tasks, key=lambda task: task.created_at):
            before, self._statuses[task.id] = self._statuses.get(task.id), task.status
            ended_at = datetime.fromisoformat(task.updated_at) if task.updated_at else None
            is_old = before is None and task.is_closed and (ended_at is None or ended_at < self._since)
            question, self._questions[task.id] = self._questions.get(task.id, ""), task.question
            if before is not task.status and not is_old and (line := _line(task)):
                yield line
            elif before is task.status and task.question and task.question != question:
                yield f"{task.id} is waiting: {task.question}{_title(task, '  ({})')}"


async def print_lines(operations: Operations, lines: WorkOrderLines) -> None:
    """Print lines on changed work orders until the caller cancels."""
    while True:
        with suppress(SeptetError):
            recent, open_ones = await asyncio.gather(
                operations.orders.list(OrderFilter(within=timedelta(days=1)), limit=_AT_ONCE),
                operations.orders.list(OrderFilter(is_open=True), limit=_AT_ONCE),
            )
            tasks = {task.id: task for task in (*recent.tasks, *open_ones.tasks)}
            for line in lines.new_lines(tasks.values()):
                say(f"{datetime.now().astimezone():%H:%M:%S}  {line}", indent=_CLOCK)
        await asyncio.sleep(1.0)


def _line(task: Task) -> str:
    form = "  ({})"
    match task.status:
        case Status.PENDING | Status.RUNNING:
            words, form = "is running" if task.status is Status.RUNNING else "is on the board", ": {}"
        case Status.WAITING if task.waits_for_a_decision:
            words = f"is waiting for your approval: septet approve {task.id}"
        case Status.WAITING:
            words = f"is waiting: {task.question or f'septet show {task.id}'}"
        case Status.COMPLETED if task.has_plan_alone:
            words = f"has its plan: septet plan {task.id}, and septet retry {task.id} continues with it"
        case Status.COMPLETED:
            words = f"is completed: {task.pr_url or f'septet show {task.id}'}"
        case Status.FAILED:
            words = f"failed: septet show {task.id}"
        case _:
            words = "was cancelled"
    return f"{task.id} {words}{_title(task, form)}"


def _title(task: Task, form: str) -> str:
    return form.format(preview(task.title, limit=60)) if task.title else ""


async def up(options: UpOptions) -> CommandReply:
    """Run all of Septet on this machine until Ctrl-C; agents live on."""
    ports = Ports(options.port, options.ui_port, options.api_port)
    StopSignals.end_start()
    settings = load_settings(options.sandbox)
    check_scenario(settings.environ.get(SCENARIO, ""), SCENARIO)
    is_quiet = not options.as_json and "log_level" not in settings.model_fields_set
    set_up_logs(settings.model_copy(update={"log_level": "error"}) if is_quiet else settings)
    state = StateDir(settings.state_dir)
    http = asyncio.create_task(asyncio.to_thread(import_module, "clients.http.serving"))
    ui_url = f"http://{page_host(api_token(settings))}:{ports.ui}"
    ui = UiAddress.free(ui_url, f"{ui_url}{CODEC_PATH}" if settings.seals else "")
    async with embedded_server(state, ports, settings.server_env, ui=ui) as server:
        identity = f"septet@{state.host_id()}"
        client = await connect(settings, address=server.address, identity=identity, options=serving_options)
        operations = Operations(WorkOrders(client, settings.task_queue), state, settings.git_env)
        lines = WorkOrderLines(datetime.now(UTC))
        async with running_worker(
            client, settings, sole=True, decide=comment_decisions(settings.task_queue), intakes_of=intakes_of
        ) as parts:
            serving = await http
            async with (
                serving.serve_api(operations, settings, serving.Door(ports.api, "--api-port")) as api,
                serving.serve_ui(ui, api.visitors, serving.Door(ports.ui, "--ui-port"), api.codec),
            ):
                signals = StopSignals.listen()
                _print_ready(server, settings, api.page, as_json=options.as_json)
                async with _beside(print_lines(operations, lines), begins=not options.as_json):
                    await signals.first.wait()
            if sys.stderr.isatty():
                say("", err=True)  # behind the terminal's ^C
            if parts.living_agents():
                say(
                    "Agents keep running. Press Ctrl-C again, before `up` has ended, to stop them too: "
                    "their work is kept in a rescue.",
                    err=True,
                )
    if signals.second.is_set():  # checked last: a second signal counts until `up` has ended
        for run in await end_living(parts.host, "`septet up` was stopped together with its agents"):
            say(f"Agent {run} was stopped; the next `septet up` takes its step up again.", err=True)
    ports_of = (("--port", ports.server, 7233), ("--ui-port", ports.ui, 8233), ("--api-port", ports.api, 8888))
    changed = "".join(f" {option} {port}" for option, port, usual in ports_of if port != usual)
    again = f"{septet_elsewhere(settings)} up{changed}"
    answer = reply_at_stop(parts.living_agents(), again)
    if not options.as_json:
        say(f"Stopped. Continue with: {again}", err=True)
    return answer


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None], *, begins: bool) -> AsyncIterator[None]:
    """If `begins` is true, run the coroutine `work` during the block; otherwise, only close the coroutine."""
    task = asyncio.create_task(work) if begins else work.close()
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _print_ready(server: ServerFile, settings: Settings, page: str, *, as_json: bool) -> None:
    if as_json:
        where = {"address": server.address, "ui": server.ui, "api": server.api, "page": page}
        print_json({"ok": True, "ready": True, **where, "state_dir": str(settings.state_dir)})
        return
    show_page_link(page)
    septet = septet_elsewhere(settings)
    say("Start a work order in another terminal, in your repository:")
    say(f"  {septet} run --title 'What is wrong' --wait")
    say(f"Temporal {server.address}, its UI {server.ui}, HTTP API {server.api}, state {settings.state_dir}")
    say("Ctrl-C stops the server and the worker; agents keep running. Press it twice to stop them too.")
