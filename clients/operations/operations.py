"""The operations on work orders and pipelines that the CLI, the HTTP API, the MCP server and the page share."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError

from clients.disk.log_cache import LogCache
from clients.executions.presence import why_nobody_works, why_nobody_works_on
from clients.temporal.work_orders import WorkOrders
from septet.errors import ServerNotReachedError
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect, is_loopback, server_address

if TYPE_CHECKING:
    from clients.disk.rescues import Rescues
    from clients.operations.reading import OrderReading
    from clients.pipelines.client import PipelineClient
    from clients.pipelines.operations import PipelineOperations
    from clients.starting.orders import Starting
    from clients.temporal.board import BoardRows
    from clients.temporal.budgets import BudgetClient
    from clients.temporal.costs import CostClient
    from clients.temporal.decisions import OrderDecisions
    from clients.temporal.deliveries import Deliveries
    from clients.temporal.intakes import IntakeClient

Kind = TypeVar("Kind")


class LazyPart(Generic[Kind]):
    """A descriptor that makes a part of `Operations`, such as `board`, and imports the part's class on first use.

    The part gets its fields from the fields and properties of `Operations` that have the same names.
    """

    def __init__(self, place: str) -> None:
        """Record the module and name of the part's class, such as `clients.temporal.board:BoardRows`."""
        self._module, _, self._name = place.partition(":")

    @overload
    def __get__(self, operations: None, owner: type) -> Self: ...
    @overload
    def __get__(self, operations: "Operations", owner: type) -> Kind: ...
    def __get__(self, operations: "Operations | None", owner: type) -> Kind | Self:
        """Return the part of an instance of `Operations`; for the class itself, return this descriptor."""
        return self if operations is None else self.of(operations)

    def of(self, operations: "Operations") -> Kind:
        """Return a new part for `operations`."""
        kind: Any = getattr(import_module(self._module), self._name)
        names = [each.name for each in fields(kind) if hasattr(Operations, each.name)]
        part: Kind = kind(**{name: getattr(operations, name) for name in names})
        return part


@dataclass(frozen=True, slots=True)
class Operations:
    """All that clients do with work orders and pipelines on one Temporal namespace and on this host's disk.

    All parts raise `NotFoundError` for a missing work order, `ServerNotReachedError` if the server does not
    answer, and `RefusedTransitionError` if the work order's state does not allow the request.
    """

    orders: WorkOrders
    state: StateDir
    git_env: Mapping[str, str]
    log_cache: LogCache = field(default_factory=LogCache, repr=False, compare=False)

    starting: ClassVar[LazyPart["Starting"]] = LazyPart("clients.starting.orders:Starting")
    reading: ClassVar[LazyPart["OrderReading"]] = LazyPart("clients.operations.reading:OrderReading")
    decisions: ClassVar[LazyPart["OrderDecisions"]] = LazyPart("clients.temporal.decisions:OrderDecisions")
    board: ClassVar[LazyPart["BoardRows"]] = LazyPart("clients.temporal.board:BoardRows")
    budgets: ClassVar[LazyPart["BudgetClient"]] = LazyPart("clients.temporal.budgets:BudgetClient")
    costs: ClassVar[LazyPart["CostClient"]] = LazyPart("clients.temporal.costs:CostClient")
    pipelines: ClassVar[LazyPart["PipelineClient"]] = LazyPart("clients.pipelines.client:PipelineClient")
    for_pipelines: ClassVar[LazyPart["PipelineOperations"]] = LazyPart(
        "clients.pipelines.operations:PipelineOperations"
    )
    intakes: ClassVar[LazyPart["IntakeClient"]] = LazyPart("clients.temporal.intakes:IntakeClient")
    deliveries: ClassVar[LazyPart["Deliveries"]] = LazyPart("clients.temporal.deliveries:Deliveries")
    rescues: ClassVar[LazyPart["Rescues"]] = LazyPart("clients.disk.rescues:Rescues")

    @property
    def client(self) -> Client:
        """The client of the Temporal server."""
        return self.orders.client

    @property
    def task_queue(self) -> str:
        """The queue of work orders."""
        return self.orders.task_queue

    @property
    def is_here(self) -> bool:
        """Whether the server is on this machine, so that its workers share this machine's disk."""
        return is_loopback(self.client.service_client.config.target_host)

    async def nobody_works(self) -> str:
        """Return a notice with a remedy if no worker serves this queue; else an empty text."""
        return await why_nobody_works(self.client, self.task_queue, self.state)

    async def nobody_works_on(self, row: WorkflowExecutionDescription) -> str:
        """Return a notice with a remedy if an open work order has no worker; else an empty text."""
        return await why_nobody_works_on(self.client, row, self.state)


async def connect_operations(settings: Settings, address: str | None = None) -> Operations:
    """Connect to the Temporal server, and return the operations; `address` replaces the settings' address.

    Raises:
        ServerNotReachedError: The server does not answer.
    """
    client = await connect(settings, address=address)
    return Operations(WorkOrders(client, settings.task_queue), StateDir(settings.state_dir), settings.git_env)


OperationsContext = Callable[[], AbstractAsyncContextManager[Operations]]
"""A function that returns a context manager; the context manager yields the operations."""


@asynccontextmanager
async def lend(operations: Operations) -> AsyncIterator[Operations]:
    """Yield `operations`, which are already connected, and translate a lost connection into an error.

    Raises:
        ServerNotReachedError: The server no longer answers.
    """
    try:
        yield operations
    except RPCError as error:
        raise ServerNotReachedError(f"The Temporal server did not answer: {error.message}.") from error


@dataclass(slots=True)
class Connection:
    """A connection to the Temporal server: made on first use, and again if the server's address changes."""

    settings: Settings
    address: str | None = None
    _operations: Operations | None = None
    _connected_to: str | None = None

    @asynccontextmanager
    async def operations(self) -> AsyncIterator[Operations]:
        """Connect if necessary, and yield the operations during the block.

        Raises:
            ServerNotReachedError: The server does not answer.
        """
        try:
            where = server_address(self.settings, self.address)
            if self._operations is None or where != self._connected_to:
                self._operations, self._connected_to = await connect_operations(self.settings, self.address), where
            async with lend(self._operations) as operations:
                yield operations
        except ServerNotReachedError:
            self._operations = None
            raise
