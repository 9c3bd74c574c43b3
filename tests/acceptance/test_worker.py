import json
import signal

from fakes.septet_command import Septet

from workflows.search_attributes import ALL


def test_a_worker_of_another_host_registers_says_that_it_is_ready_and_ends_on_sigterm(
    served: Septet, septet: Septet
) -> None:
    """`worker` serves a server that it did not start, and SIGTERM ends it with exit code 0."""
    address = json.loads((served.state / "server.json").read_text(encoding="utf-8"))["address"]
    with septet.serving("worker", "--address", address) as worker:
        assert worker.ready["ready"] is True
        assert worker.ready["task_queue"] == "septet"
        assert worker.ready["host"] == (septet.state / "host-id").read_text(encoding="ascii").strip()
        assert worker.end(signal.SIGTERM) == 0
    assert len(worker.lines) == 1


def test_register_creates_the_search_attributes_that_a_namespace_lacks(served: Septet, septet: Septet) -> None:
    """`worker --register` names what it created; a second time there is nothing left to create."""
    served.temporal("operator", "namespace", "create", "--namespace", "shared")
    shared = Septet(septet.root, {"TEMPORAL_NAMESPACE": "shared"})
    address = json.loads((served.state / "server.json").read_text(encoding="utf-8"))["address"]
    ended = shared("worker", "--register", "--address", address, "--json")
    assert ended.code == 0, ended
    assert ended.json["namespace"] == "shared"
    assert set(ended.json["registered"]) == {key.name for key in ALL}
    assert shared("worker", "--register", "--address", address, "--json").json["registered"] == []
    listed = served.temporal("operator", "search-attribute", "list", "--namespace", "shared").out
    assert all(key.name in listed for key in ALL)
