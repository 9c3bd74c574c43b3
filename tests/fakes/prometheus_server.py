"""A real Prometheus on loopback, with alert rules of the repository that look more often and wait less."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from fakes.septet_command import free_port
from fakes.waiting import until

_CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: septet
    static_configs: [{{targets: ["{target}"]}}]
"""
_RANGE = re.compile(r"(?<=\[)\d+[smhd](?=\])|(?<=offset )\d+[smhd]")
_FOR = re.compile(r"\bfor: \w+")


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire now."""
        answer = httpx.get(f"{self.url}/api/v1/alerts", trust_env=False).json()
        return {each["labels"]["alertname"] for each in answer["data"]["alerts"] if each["state"] == "firing"}

    def value(self, query: str) -> float:
        """Return the value of a query that has one; 0 where there is none."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, trust_env=False).json()
        return sum(float(each["value"][1]) for each in answer["data"]["result"])


@contextmanager
def prometheus(folder: Path, target: str, alerts: Path, window: str) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes `target` five times a second for as long as the block lasts.

    Args:
        folder: An empty one, for its files.
        target: A worker's metrics, as host:port.
        alerts: The rules; they are copied with `window` for all their ranges, and fire at once.
        window: How far back they look, such as `5s`.
    """
    folder.mkdir()
    text = _FOR.sub("for: 0s", _RANGE.sub(window, alerts.read_text(encoding="utf-8")))
    (folder / "alerts.yml").write_text(text, encoding="utf-8")
    (folder / "prometheus.yml").write_text(_CONFIG.format(target=target), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    argv = [
        "prometheus",
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL) as process:
        try:
            until(lambda: process.poll() is None and _is_ready(f"http://{address}"))
            yield Prometheus(f"http://{address}")
        finally:
            process.kill()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False).is_success
    except httpx.HTTPError:
        return False
