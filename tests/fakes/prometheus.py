"""A worker's metrics for Prometheus, as a scrape reads them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

_LINE = re.compile(r"(?P<name>[a-zA-Z_:]\w*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Scrape:
    samples: tuple[Sample, ...]

    def total(self, name: str, **labels: str) -> float:
        found = (each for each in self.samples if each.name == name and labels.items() <= each.labels.items())
        return sum(each.value for each in found)


def scrape(address: str) -> Scrape:
    answer = httpx.get(f"http://{address}/metrics", trust_env=False)
    answer.raise_for_status()
    matches = (_LINE.fullmatch(line) for line in answer.text.splitlines())
    return Scrape(
        tuple(
            Sample(match["name"], dict(_LABEL.findall(match["labels"] or "")), float(match["value"]))
            for match in matches
            if match
        )
    )
