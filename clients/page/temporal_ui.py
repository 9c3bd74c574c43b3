"""Build links from the page to Temporal's own web UI."""

from dataclasses import dataclass
from urllib.parse import quote

from clients.operations import Operations
from workers.server.server_file import read_server_file


@dataclass(frozen=True, slots=True)
class TemporalUi:
    """Addresses in Temporal's web UI."""

    namespace_url: str

    @property
    def board(self) -> str:
        """The list of work orders."""
        return self._list("WorkOrder")

    @property
    def pipelines(self) -> str:
        """The list of pipelines."""
        return self._list("Pipeline")

    def work_order(self, order_id: str) -> str:
        """One work order, or one pipeline."""
        return f"{self.namespace_url}/workflows/{quote(order_id, safe='')}"

    def _list(self, kind: str) -> str:
        query = f'WorkflowType="{kind}"'
        return f"{self.namespace_url}/workflows?query={quote(query)}"


def temporal_ui(operations: Operations, address: str | None) -> TemporalUi | None:
    """Return the UI at `address`, else that of this host's embedded server; `None` where none is known."""
    client = operations.orders.client
    if address is None:
        server = read_server_file(operations.state)
        if server is None or server.address != client.service_client.config.target_host:
            return None
        address = server.ui
    return TemporalUi(f"{address.rstrip('/')}/namespaces/{quote(client.namespace, safe='')}")
