"""`septet logs`: what the agents of a work order said and did, from the files of this host."""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from clients.cli.reply import Reply, reply
from clients.runs_on_disk import started_runs
from clients.work_orders import WorkOrders
from septet.agents.outcome import ExitRecord
from septet.agents.preview import scrub
from septet.agents.registry import ADAPTERS
from septet.agents.runs import Run
from septet.agents.transcript import Entry, Transcript
from septet.contracts.names import Status
from septet.errors import NotFoundError
from septet.settings import Settings, load_settings
from septet.state import StateDir
from workers.connection import connect

_LOOK_SECONDS: Final = 0.3
_TEXT_SHOWN: Final = 2000
_CHUNK_BYTES: Final = 1024 * 1024
_STDERR_SHOWN: Final = 600
_OPEN: Final = frozenset({Status.RUNNING, Status.PENDING, Status.WAITING})


def logs(order_id: str, *, follow: bool, raw: bool, address: str | None, as_json: bool) -> None:
    """Show the streams of all runs, oldest first; with `follow`, go on until the work order is closed."""

    async def work() -> Reply:
        settings = load_settings()
        state = StateDir(settings.state_dir)
        views: dict[str, _View] = {}
        entries: list[dict[str, Any]] = []
        while True:
            over = not follow or await _is_closed(settings, order_id, address)
            for run in started_runs(state, order_id):
                view = views.setdefault(run.folder.name, _View(run))
                if raw:
                    _print_bytes(view)
                elif follow or not as_json:
                    _print(view.new_entries(), as_json=as_json)
                else:
                    entries += view.new_entries()
            sys.stdout.flush()
            if over:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        if not views:
            raise NotFoundError(
                f"This host has no runs of {order_id}.", remedy="Ask the host that runs its steps."
            )
        return Reply({"log_entries": entries})

    reply(work, as_json=as_json and not raw and not follow)


async def _is_closed(settings: Settings, order_id: str, address: str | None) -> bool:
    task = await WorkOrders(await connect(settings, address=address), settings.task_queue).task(order_id)
    return task.status not in _OPEN


@dataclass(slots=True)
class _View:
    """One run's files, as far as they were shown."""

    run: Run
    _position: int = 0
    _over: bool = False
    _transcript: Transcript | None = field(init=False)

    def __post_init__(self) -> None:
        adapter = ADAPTERS.get(self.run.record.agent) if self.run.record is not None else None
        self._transcript = adapter.transcript() if adapter is not None else None

    def new_bytes(self) -> Iterator[bytes]:
        """Yield what the stream has got since the last look."""
        try:
            with self.run.stdout.open("rb", buffering=0) as stream:
                stream.seek(self._position)
                while chunk := stream.read(_CHUNK_BYTES):
                    self._position += len(chunk)
                    yield chunk
        except FileNotFoundError:
            return

    def new_entries(self) -> Iterator[dict[str, Any]]:
        """Yield what was said and done since the last look; a run that has ended is told to its end, once."""
        transcript, record = self._transcript, self.run.record
        if self._over or transcript is None or record is None:
            return
        end = self.run.exit()
        about = {"run": self.run.folder.name, "step": record.step, "agent": record.agent}
        for chunk in self.new_bytes():
            yield from (about | _bounded(entry) for entry in transcript.feed(chunk))
        if end is not None:
            self._over = True
            yield from (about | _bounded(entry) for entry in (*transcript.finish(), *self._trouble(end)))

    def _trouble(self, end: ExitRecord) -> Iterator[Entry]:
        """Yield why the process ended, where that is no good end, and the last words of its stderr."""
        if end.cause == "exited" and end.exit_code == 0:
            return
        code = f", exit code {end.exit_code}" if end.exit_code is not None else ""
        number = f", signal {end.signal}" if end.signal is not None else ""
        words = f"The agent's process ended: {end.why or end.cause}{code}{number}. {self._stderr()}"
        yield Entry("error", words.strip())

    def _stderr(self) -> str:
        try:
            return self.run.stderr.read_bytes()[-_STDERR_SHOWN:].decode("utf-8", errors="replace").strip()
        except FileNotFoundError:
            return ""


def _bounded(entry: Entry) -> dict[str, str]:
    """Return an entry without keys in it, and short; `--raw` has it all."""
    return asdict(entry) | {"text": scrub(entry.text[: 2 * _TEXT_SHOWN])[:_TEXT_SHOWN]}


def _print_bytes(view: _View) -> None:
    for chunk in view.new_bytes():
        sys.stdout.buffer.write(chunk)


def _print(entries: Iterator[dict[str, Any]], *, as_json: bool) -> None:
    for entry in entries:
        if as_json:
            line = json.dumps(entry, ensure_ascii=False)
        else:
            tool = f" {entry['tool']}" if entry["tool"] else ""
            text = entry["text"].rstrip().replace("\n", "\n    ")
            line = f"{entry['run']}  {entry['kind']}{tool}: {text}"
        sys.stdout.write(line + "\n")
