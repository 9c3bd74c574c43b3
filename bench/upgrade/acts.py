"""The events of the workers in a trial, act by act."""

import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fakes.repositories import make_origin
from fakes.septet_command import Ended, Running, Septet
from temporalio.client import Client

from bench.upgrade.releases import Release, releases
from bench.upgrade.work import Work
from septet.state import StateDir
from workers.builds.deployment import Deployment
from workers.connection.plugin import SeptetPlugin
from workers.observing.runtime import quiet_runtime
from workers.server.ports import Ports, free_port
from workers.server.server import embedded_server


@dataclass(frozen=True, slots=True)
class Act:
    """The observations of an act."""

    name: str
    current: str
    """The build that had the work orders at its end."""
    in_flight: int
    seconds: float


@dataclass
class Trial:
    """One server, one host, and workers of several releases on it."""

    folder: Path
    client: Client
    work: Work
    releases: list[Release]
    count: int
    """The work orders that begin in each act."""
    acts: list[Act] = field(default_factory=list)
    builds: dict[str, str] = field(default_factory=dict)
    """The build of each release."""
    broken: list[str] = field(default_factory=list)
    """The failures, in words."""
    rolled_back: str = ""
    """The output of `promote` for the earlier build."""

    def __post_init__(self) -> None:
        """Begin without workers."""
        self._stack = ExitStack()
        self._workers: dict[str, Running] = {}
        self._deployment = Deployment(self.client, self.work.queue)

    async def carry_out(self) -> None:
        """Run all acts, end all work, and collect the results."""
        try:
            await self._go_through_releases()
            await self._ramp_and_promote()
            await self._go_back_and_forth()
            await self._end()
        finally:
            self._stack.close()
            self.work.machine.end_all()

    async def _go_through_releases(self) -> None:
        """Let each kept release take the work orders from the release before, which ends after a restart."""
        before: Release | None = None
        for release in self.releases[:-1]:
            began = time.monotonic()
            await self._start(release)
            await self._expect_current(release, f"{release.name} starts")
            await self.work.begin(f"of-{release.name.replace('.', '-')}", self.count)
            if before is not None:
                await self._restart(before)
                await self._expect_current(release, f"{before.name} is restarted")
                self._kill(before)
            await self._note(f"{release.name} starts" + (f", {before.name} killed" if before else ""), began)
            before = release

    async def _ramp_and_promote(self) -> None:
        """Give this commit's build half of the work, then all; the restarted build before takes nothing back."""
        old, today = self.releases[-2:]
        began = time.monotonic()
        await self._start(today)
        await self._expect_current(old, f"{today.name} starts")
        self._promote(self.builds[today.name], "--ramp", "50")
        await self.work.begin("ramp", self.count)
        await self._sweep()
        await self._note("today ramps: 50 %", began)
        began = time.monotonic()
        self._promote(self.builds[today.name])
        await self._restart(old)
        await self._expect_current(today, f"{old.name} is killed and started again")
        await self.work.begin("promoted", self.count)
        self._open_half()
        await self._sweep()
        await self._note(f"today promoted, {old.name} restarted", began)

    async def _go_back_and_forth(self) -> None:
        """Check that a roll-back is refused while work orders would stand still; force it, and undo it."""
        old, today = self.releases[-2:]
        began = time.monotonic()
        refused = self._command("promote", self.builds[old.name], "--json")
        self.rolled_back = (
            "went without force" if refused.code == 0 else json.loads(refused.out)["error"]["message"]
        )
        if refused.code != 0:
            self._promote(self.builds[old.name], "--force")
        await self._expect_current(old, "it is rolled back to")
        await self.work.begin("back", self.count)
        await self._note(f"rolled back to {old.name}", began)
        began = time.monotonic()
        self._promote(self.builds[today.name])
        await self._restart(today)
        self._kill(old)
        await self._expect_current(today, "it is rolled forward to")
        await self._note(f"rolled forward, {old.name} killed", began)

    async def _end(self) -> None:
        began = time.monotonic()
        self.work.open([*self.work.orders, *self.work.pipelines])
        await self.work.until_closed([*self.work.orders, *self.work.pipelines])
        await self._sweep()
        await self._note("all gates open", began)

    def _open_half(self) -> None:
        """Let every second work order and the first pipelines end while workers change."""
        self.work.open([*self.work.orders[::2], *self.work.pipelines[:2]])

    async def _sweep(self) -> None:
        """Trigger a pass of the host's janitor, and wait for its end."""
        host = (self.work.machine.state / "host-id").read_text(encoding="ascii").strip()
        handle = self.client.get_schedule_handle(f"septet-janitor-{host}")
        before = (await handle.describe()).info.num_actions
        await handle.trigger()
        await self.work.until(lambda: _ran_after(handle, before), "the janitor's pass")

    async def _start(self, release: Release) -> None:
        known = set(await self._deployment.last_polls())
        worker = self.work.machine.beside("worker", PYTHONPATH=str(release.packages), SEPTET_MAX_AGENTS="1000")
        self._workers[release.name] = self._stack.enter_context(worker)
        if release.name not in self.builds:
            await self.work.until(lambda: self._new_build(known), f"a build of {release.name}")
            (self.builds[release.name],) = set(await self._deployment.last_polls()) - known

    async def _new_build(self, known: set[str]) -> bool:
        return bool(set(await self._deployment.last_polls()) - known)

    def _kill(self, release: Release) -> None:
        self._workers.pop(release.name).end(signal.SIGKILL)

    async def _restart(self, release: Release) -> None:
        """Kill a release's worker and start it again, as `restart: unless-stopped` does."""
        self._kill(release)
        await self._start(release)

    def _promote(self, build: str, *options: str) -> None:
        ended = self._command("promote", build, *options, "--json")
        if ended.code != 0:
            self.broken.append(f"promote {build} {' '.join(options)}: {ended.out.strip() or ended.err.strip()}")

    def _command(self, *args: str) -> Ended:
        """Run a command of this commit's release."""
        today = Septet(
            self.work.machine.root,
            {**self.work.machine.extra, "PYTHONPATH": str(self.releases[-1].packages)},
        )
        return today.run_program("septet", *args)

    async def _expect_current(self, release: Release, when: str) -> None:
        current = (await self._deployment.routing()).current
        if current != self.builds[release.name]:
            self.broken.append(f"after {when} build {current} is current, not {self.builds[release.name]}")

    async def _note(self, name: str, began: float) -> None:
        current, in_flight = (await self._deployment.routing()).current, await self.work.in_flight()
        self.acts.append(Act(name, current, in_flight, time.monotonic() - began))
        print(f"{name}: {in_flight} under way, {self.acts[-1].seconds:.0f} s", flush=True)


@asynccontextmanager
async def laid_out(folder: Path, names: list[str], count: int) -> AsyncIterator[Trial]:
    """Run a server, and yield a trial on it."""
    unpacked = releases(names, folder)
    origin = make_origin(folder / "origin", "app.git")
    origin.push({"app.py": "print('hello')\n", "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n"})
    state = StateDir(folder / "server")
    async with AsyncExitStack() as stack:
        ports = Ports(free_port(), free_port())
        env = {name: Septet(folder / "server").env[name] for name in ("PATH", "HOME")}
        server = await stack.enter_async_context(embedded_server(state, ports, env))
        client = await Client.connect(server.address, plugins=[SeptetPlugin()], runtime=quiet_runtime())
        extra = {"TEMPORAL_ADDRESS": server.address, "SEPTET_LOG_LEVEL": "warning", "SEPTET_HOST_LIMIT": "1000"}
        machine = Septet(folder / "host", {**extra, "SEPTET_PROJECT_LIMIT": "1000", "SEPTET_SANDBOX": "none"})
        yield Trial(folder, client, Work(client, machine, origin), unpacked, count)


async def _ran_after(handle: "object", before: int) -> bool:
    info = (await handle.describe()).info  # type: ignore[attr-defined]
    return info.num_actions > before and not info.running_actions
