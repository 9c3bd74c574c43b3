"""The embedded server: one for each state directory, on free ports, with a database that stays."""

import json
import os
import re
from pathlib import Path

import psutil
import pytest
from fakes.septet_command import free_ports
from fakes.small_disk import SmallDisk, small_disk
from temporalio.api.operatorservice.v1 import RemoveSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from septet.contracts.workspace import DELIVERS_CANCELS
from septet.errors import ServerNotReachedError, UsageError
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect
from workers.server.ports import Ports
from workers.server.preflight import PreflightError, host_services, register_search_attributes
from workers.server.server import embedded_server, temporal_program
from workers.server.server_file import read_server_file
from workflows.wire.search_attributes import ALL

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def _write_server_file(state: StateDir, **facts: object) -> None:
    own = psutil.Process()
    told = {
        "address": "127.0.0.1:7233", "ui": "http://127.0.0.1:8233", "pid": own.pid, "start_time": own.create_time(),
        "server_pid": own.pid, "server_start_time": 0.0,
    }  # fmt: skip
    state.server_file.write_text(json.dumps(told | facts), encoding="utf-8")


async def test_a_server_serves_its_state_directory(state: StateDir) -> None:
    """The server has an address, our search attributes and 30 days of retention, and ends with its block."""
    ports = Ports(*free_ports(2))
    async with embedded_server(state, ports, ENV) as server:
        assert read_server_file(state) == server
        assert server.is_held
        assert server.address == f"127.0.0.1:{ports.server}"

        client = await connect(Settings(state_dir=state.root, environ={}))
        assert client.service_client.config.target_host == server.address
        assert await register_search_attributes(client) == ()
        assert DELIVERS_CANCELS not in await host_services(client), "the server pushes them itself"
        namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
        assert namespace.config.workflow_execution_retention_ttl.ToTimedelta().days == 30

    assert not _lives(server.server_pid)
    assert read_server_file(state) is None
    assert state.database.exists()


async def test_a_port_that_is_given_twice_is_refused(state: StateDir) -> None:
    """A port that is given twice is refused before the start, and the remedy names the option."""
    port, other = free_ports(2)
    with pytest.raises(UsageError, match=f"Port {port} is given twice") as refused:
        async with embedded_server(state, Ports(port, other, port), ENV):
            pytest.fail("the server has started")
    assert refused.value.remedy == "Name another one with --api-port."
    assert not state.database.exists()


async def test_a_server_that_does_not_start_shows_its_log(state: StateDir) -> None:
    """The error for a server that ends at its start has its output and the path of its log."""
    state.database.mkdir()
    with pytest.raises(ServerNotReachedError) as failed:
        async with embedded_server(state, Ports(*free_ports(2)), ENV):
            pytest.fail("the server has started")
    assert str(state.server_log) in failed.value.remedy
    assert "it printed nothing" not in failed.value.message
    assert not state.server_file.exists()


async def test_a_missing_server_is_named_with_the_source_of_its_address(state: StateDir) -> None:
    """If no server answers, the error names the address and its source, and the remedy is `septet up`."""
    settings = Settings(state_dir=state.root, environ={})
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(ServerNotReachedError, match=rf"answers at {address} \(--address\)") as failed:
        await connect(settings, address=address)
    assert "septet up" in failed.value.remedy
    _write_server_file(state, address=address)
    with pytest.raises(ServerNotReachedError, match=rf"answers at {address} \(server.json in "):
        await connect(settings)


@pytest.mark.parametrize("content", ["", "no json", "[]", '{"address": "x"}', '{"surprise": 1}'])
def test_a_server_file_that_cannot_be_read_is_none(state: StateDir, content: str) -> None:
    """A server file that cannot be read counts as no server."""
    state.server_file.write_text(content, encoding="utf-8")
    assert read_server_file(state) is None


def test_a_server_file_counts_while_its_process_lives(state: StateDir) -> None:
    """A server file counts only if its pid has the recorded start time."""
    assert read_server_file(state) is None
    _write_server_file(state)
    told = read_server_file(state)
    assert told is not None
    assert told.is_held
    _write_server_file(state, start_time=1.0)
    told = read_server_file(state)
    assert told is not None
    assert not told.is_held


async def test_the_preflight_registers_what_is_missing() -> None:
    """Missing search attributes are registered once, and an attribute of a wrong type is refused by name."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(temporal_program()),
        dev_server_extra_args=["--search-attribute", "SeptetPriority=Keyword"],
    ) as environment:
        client = environment.client
        with pytest.raises(PreflightError, match="SeptetPriority") as refused:
            await register_search_attributes(client)
        assert "--name SeptetPriority --type Int" in refused.value.remedy
        wrong = RemoveSearchAttributesRequest(namespace=client.namespace, search_attributes=["SeptetPriority"])
        await client.operator_service.remove_search_attributes(wrong)
        assert set(await register_search_attributes(client)) == {key.name for key in ALL}
        assert await register_search_attributes(client) == ()


async def test_starts_of_workers_leave_no_connection_in_the_server(state: StateDir) -> None:
    """Repeated starts of workers leave no further connections of the server to itself."""
    async with embedded_server(state, Ports(*free_ports(2)), ENV) as server:
        client, process = await Client.connect(server.address), psutil.Process(server.server_pid)

        def connections() -> int:
            found = process.net_connections("tcp")
            ports = {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}
            return sum(each.raddr.port in ports for each in found if each.status == psutil.CONN_ESTABLISHED)

        before = connections()
        for _ in range(20):
            await register_search_attributes(client)
            await host_services(client)
        assert connections() < before + 20


def _lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.needs("root")
def test_a_server_file_that_others_may_write_leads_nobody(state: StateDir) -> None:
    """A server file that others own or may write, or that is a link, counts as no server."""
    state.prepare()
    _write_server_file(state)
    assert read_server_file(state) is not None
    state.server_file.chmod(0o622)
    assert read_server_file(state) is None
    state.server_file.chmod(0o600)
    os.chown(state.server_file, 65534, 65534)
    assert read_server_file(state) is None
    os.chown(state.server_file, 0, 0)
    state.server_file.rename(state.root / "elsewhere")
    state.server_file.symlink_to(state.root / "elsewhere")
    assert read_server_file(state) is None


@pytest.mark.small_disk
async def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    """An error of a full disk is raised as it is, and a server that cannot start names the full disk."""
    state = StateDir(tmp_path / "disk")
    with small_disk(state.root) as disk:
        with pytest.raises(OSError, match=f"No space left on device: '{state.root}/host-id"):
            async with embedded_server(state, Ports(*free_ports(2)), ENV):
                _begin_on_full_disk(state, disk)
        state.database.rename(state.root / "another")
        state.database.mkdir()
        os.truncate(disk.path / "ballast", (disk.path / "ballast").stat().st_size - 32 * 1024)
        with pytest.raises(ServerNotReachedError) as failed:
            async with embedded_server(state, Ports(*free_ports(2)), ENV):
                pytest.fail("the server has started")
    assert re.match(
        rf"The disk of {re.escape(str(state.root))} is full: [\d,]+ bytes are free", failed.value.message
    )
    assert failed.value.remedy == f"Make room there, then start it again. Its whole log is {state.server_log}."


def _begin_on_full_disk(state: StateDir, disk: SmallDisk) -> None:
    disk.fill()
    state.host_id()
