"""The modules that a client and a worker do not import at their start."""

import subprocess
import sys


def printed(code: str) -> bytes:
    return subprocess.check_output([sys.executable, "-c", code])


def test_a_client_imports_no_workflow() -> None:
    """A command that only queries does not wait for the import of the workers' code."""
    code = "import sys, workers.connection.connection; print('workflows.work_order.workflow' in sys.modules)"
    assert printed(code) == b"False\n"


def test_a_worker_imports_no_cryptography_and_no_http_client_before_it_needs_them() -> None:
    """These modules take ten megabytes of each worker's memory, also without sealing and notifications."""
    code = """if True:
        import sys, clients.cli.main, workers.connection.connection, workers.worker
        print([name for name in ("cryptography", "httpx", "fastapi") if name in sys.modules])"""
    assert printed(code) == b"[]\n"
