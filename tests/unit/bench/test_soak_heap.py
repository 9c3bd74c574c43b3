"""What is live in a server's memory, by its metrics."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from bench.soak.heap import LiveHeap


@contextmanager
def metrics_of(*heaps: str) -> Iterator[str]:
    """Serve the metrics of a server whose heap is this, and then that."""
    left = list(heaps)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the server looks for
            content = f"memory_heapidle 7\n{left.pop(0)}\nmemory_heap_objects 9\n".encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}/metrics"
        finally:
            listening.shutdown()
            thread.join()


async def test_the_least_since_the_last_question_counts() -> None:
    """A heap is as small as what is live for a moment alone; each question begins anew."""
    lines = (
        'memory_heap{service_name="history"} 9.1e+07',
        "memory_heap 6.4e+07",
        "memory_heap 8e+07",
        "memory_heap 7e+07",
    )
    with metrics_of(*lines) as address:
        heap = LiveHeap(address)
        for _ in range(3):
            await heap.look()
        assert heap.take() == 64e6
        await heap.look()
        assert heap.take() == 70e6


async def test_a_server_that_tells_of_no_heap_is_a_mistake() -> None:
    """Nothing is taken for a small heap."""
    with metrics_of("memory_heapinuse 5") as address, pytest.raises(ValueError, match="no memory_heap"):
        await LiveHeap(address).look()
