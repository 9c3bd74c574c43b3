"""A real Prometheus on loopback with the repository's alert rules; an hour of a rule lasts a minute here."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from fakes.septet_command import free_port
from fakes.waiting import until

RULES: Final = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
LONGEST_SECONDS: Final = 300.0
"""The seconds after which an alert over two hours, two minutes here, has cleared on any machine."""

_CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: septet
    static_configs: [{{targets: {targets}}}]
"""
_DURATION = re.compile(r"(?<=\[)\d+[hm](?=\])|(?<=offset )\d+[hm]\b|(?<=for: )\d+[hm]\b")
_SHORTER: Final = {"h": "m", "m": "s"}
_WAITS: Final = ("> 300\n", "> 14400\n")
"""The limits of waiting for a slot, five minutes, and for a seat, four hours, which are too long for a test."""
_SHORT_WAIT: Final = "> 5\n"


def in_a_minute_for_an_hour(rules: str) -> str:
    """Return the text of alert rules with each hour as a minute and each minute as a second.

    Only durations change: ranges, offsets and the pending time. The two alerts for long waits, five minutes and four
    hours, wait for five seconds.
    """
    text = _DURATION.sub(lambda found: found[0][:-1] + _SHORTER[found[0][-1]], rules)
    for wait in _WAITS:
        assert text.count(wait) == 1
        text = text.replace(wait, _SHORT_WAIT)
    return text


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str

    def alerts(self) -> list[Mapping[str, Any]]:
        """Return the pending and firing alerts of Prometheus."""
        answer = httpx.get(f"{self.url}/api/v1/alerts", trust_env=False).json()
        alerts: list[Mapping[str, Any]] = answer["data"]["alerts"]
        return alerts

    def firing(self) -> set[str]:
        """Return the names of the firing alerts."""
        return {each["labels"]["alertname"] for each in self.alerts() if each["state"] == "firing"}

    def until_fired(self, *names: str) -> Mapping[str, Mapping[str, Any]]:
        """Wait until each of these alerts has fired, at any time; return each as it fired."""
        fired: dict[str, Mapping[str, Any]] = {}

        def look() -> bool:
            fires = {each["labels"]["alertname"]: each for each in self.alerts() if each["state"] == "firing"}
            fired.update({name: fires[name] for name in names if name in fires})
            return len(fired) == len(names)

        until(look, LONGEST_SECONDS)
        return fired

    def until_clear(self, name: str) -> None:
        """Wait until an alert no longer fires."""
        until(lambda: name not in self.firing(), LONGEST_SECONDS)

    def value(self, query: str) -> float:
        """Return the value of a query; 0 without a result."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, trust_env=False).json()
        return sum(float(each["value"][1]) for each in answer["data"]["result"])


@contextmanager
def prometheus(folder: Path, *targets: str) -> Iterator[Prometheus]:
    """Run a Prometheus during the block that scrapes workers five times a second.

    Args:
        folder: A new folder for its files.
        targets: The workers' metrics, each as host:port.
    """
    folder.mkdir()
    rules = in_a_minute_for_an_hour(RULES.read_text(encoding="utf-8"))
    (folder / "alerts.yml").write_text(rules, encoding="utf-8")
    (folder / "prometheus.yml").write_text(_CONFIG.format(targets=[*targets]), encoding="utf-8")
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
