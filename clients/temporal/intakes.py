"""The client of intakes; each intake is a Temporal Schedule."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.host.payloads import read_json
from clients.executions.messages import server_refusal, server_refusals
from septet.contracts.intake import (
    INTAKE_PREFIX,
    IntakeInput,
    IntakePass,
    IntakeRemovedReply,
    IntakeReply,
    IntakesReply,
    IntakeView,
    delivered_at,
    delivery_note,
)
from septet.contracts.repository import without_credentials
from septet.contracts.seal import key_id_of
from septet.contracts.tracker import team_page
from septet.errors import AlreadyRunningError, NotFoundError, SealedError
from septet.git.engine.address import parse_address
from septet.system.text import timestamp

_DIGEST: Final = 6
_NOTED_EVERY: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class IntakeClient:
    """Adds, lists and removes the intakes of one Temporal namespace.

    All methods raise `ServerNotReachedError` if the server does not answer.
    """

    client: Client
    task_queue: str = "septet"

    async def add(self, intake: IntakeInput) -> IntakeReply:
        """Add an intake, and begin its first pass over the forge's issues at once.

        Raises:
            AlreadyRunningError: An intake of the repository and the label exists.
            InvalidInputError: The repository is not an address.
        """
        page = team_page(intake.repository)
        address = parse_address(intake.repository if page is None else page.address, home=Path.home())
        where = {
            "repository": without_credentials(intake.repository),
            "project": intake.project or address.project,
        }
        if page is not None:  # a team's issues may belong to several repositories
            where = {"repository": page.address}
        intake = intake.model_copy(update=where)
        name = intake_id(address.key, intake.label)
        schedule = Schedule(
            action=ScheduleActionStartWorkflow(
                "Intake",
                IntakePass(intake=intake),
                id=name,
                task_queue=self.task_queue,
                static_summary=f"{intake.repository} {intake.label}"[:200],
            ),
            spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=intake.every_seconds))]),
            policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
        )
        try:
            await self.client.create_schedule(name, schedule, trigger_immediately=True)
        except ScheduleAlreadyRunningError as error:
            remedy = f"Remove it first, to add it with other choices: septet intake remove {name}"
            whose = page.team if page is not None else address.project
            message = f"Issues of {whose} with the label {intake.label} are already taken."
            raise AlreadyRunningError(message, remedy=remedy) from error
        except RPCError as error:
            raise server_refusal(error) from error
        return IntakeReply(intake=await self._view(name))

    async def list(self) -> IntakesReply:
        """Return all intakes, sorted by id."""
        with server_refusals():
            names = sorted([name async for name in self._names(INTAKE_PREFIX)])
            return IntakesReply(intakes=tuple([await self._view(name) for name in names]))

    async def remove(self, name: str) -> IntakeRemovedReply:
        """Remove an intake; work orders that the intake started continue.

        Raises:
            NotFoundError: The intake does not exist.
        """
        if not name.startswith(INTAKE_PREFIX):
            raise _unknown(name)
        try:
            await self.client.get_schedule_handle(name).delete()
        except RPCError as error:
            raise _unknown(name) if error.status is RPCStatusCode.NOT_FOUND else server_refusal(error) from error
        return IntakeRemovedReply(removed=name)

    async def of_repository(self, key: str) -> tuple[IntakeInput, ...]:
        """Return the active intakes of a repository; `key` is the key of the repository's address.

        Sealed intakes are omitted if this process lacks the key that sealed them.

        Raises:
            RPCError: The server refused.
        """
        names = sorted([name async for name in self._names(f"{INTAKE_PREFIX}{key}-")])
        intakes = []
        for each in [await self.client.get_schedule_handle(name).describe() for name in names]:
            with suppress(SealedError):
                if not each.schedule.state.paused:
                    intakes.append(await self._input(each))
        return tuple(intakes)

    async def note_delivery(self, key: str, now: datetime) -> None:
        """Record in a repository's intakes that the repository sends webhooks, at most about once an hour.

        Raises:
            RPCError: The server refused.
        """
        note = delivery_note(now)

        def add_note(update: ScheduleUpdateInput) -> ScheduleUpdate | None:
            schedule = update.description.schedule
            before = delivered_at(schedule.state.note or "")
            if before is not None and now - before < _NOTED_EVERY:
                return None
            schedule.state.note = note
            return ScheduleUpdate(schedule=schedule)

        for name in [name async for name in self._names(f"{INTAKE_PREFIX}{key}-")]:
            await self.client.get_schedule_handle(name).update(add_note)

    async def _names(self, prefix: str) -> AsyncIterator[str]:
        async for entry in await self.client.list_schedules():
            if entry.id.startswith(prefix):
                yield entry.id

    async def _input(self, description: ScheduleDescription) -> IntakeInput:
        try:
            content = await read_json(self.client.data_converter, _inputs_of(description)[0])
            return IntakePass.model_validate_json(content, extra="ignore").intake
        except (ValidationError, IndexError) as error:
            raise _unknown(description.id) from error

    async def _view(self, name: str) -> IntakeView:
        description = await self.client.get_schedule_handle(name).describe()
        following = description.info.next_action_times
        try:
            choices: dict[str, Any] = dict(await self._input(description))
        except SealedError:
            key = key_id_of(_inputs_of(description)[0].metadata)
            every = next((each.every for each in description.schedule.spec.intervals), timedelta())
            choices = {
                "repository": f"(sealed with key {key})",
                "label": "",
                "every_seconds": int(every.total_seconds()),
            }
        return IntakeView(
            id=name,
            is_paused=description.schedule.state.paused,
            passes=description.info.num_actions,
            next_at=timestamp(following[0]) if following else None,
            **choices,
        )


async def intakes_of(client: Client, key: str) -> tuple[IntakeInput, ...]:
    """Return the active intakes of a repository, for the workers that claim its issues.

    Raises:
        RPCError: The server refused.
    """
    return await IntakeClient(client).of_repository(key)


def intake_id(key: str, label: str) -> str:
    """Return the id of the intake for a repository's key and a label; the intake's schedule has the same id."""
    return f"{INTAKE_PREFIX}{key}-{sha256(label.encode()).hexdigest()[:_DIGEST]}"


def _inputs_of(description: ScheduleDescription) -> Sequence[Payload]:
    action = description.schedule.action
    return action.args if isinstance(action, ScheduleActionStartWorkflow) else ()


def _unknown(name: str) -> NotFoundError:
    return NotFoundError(f"There is no intake {name}.", remedy="See them all with `septet intake list`.")
