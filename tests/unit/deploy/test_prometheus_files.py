import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from septet.telemetry.metrics import METRICS, MetricKind

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
TESTS = ROOT / "tests" / "data" / "prometheus" / "alerts_test.yml"
PAGE = ROOT / "docs" / "observability.md"
DASHBOARD = DEPLOY / "grafana" / "septet.json"


def rules(kind: str = "alert") -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for rule in group["rules"] if kind in rule]


def panels() -> list[dict[str, Any]]:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in [*rules("record"), *rules()])
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


def served() -> set[str]:
    endings = ("_bucket", "_sum", "_count")
    return {
        name
        for metric in METRICS
        for name in (
            [metric.name + ending for ending in endings]
            if metric.kind is MetricKind.HISTOGRAM
            else [metric.exposed]
        )
    }


def promtool(*args: str | Path) -> None:
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("promtool")
def test_prometheus_takes_the_configuration_and_its_rules() -> None:
    """Prometheus's own check accepts the configuration and the rules."""
    promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    promtool("check", "rules", ALERTS)


@pytest.mark.needs("promtool")
def test_each_alert_fires_when_its_cause_is_there_and_clears_when_it_is_gone() -> None:
    """Prometheus's rule tests pass, and each alert has a test in which it fires and then clears."""
    promtool("test", "rules", TESTS)
    tests = {test["name"]: test["promql_expr_test"] for test in yaml.safe_load(TESTS.read_text("utf-8"))["tests"]}
    assert sorted(tests) == sorted(rule["alert"] for rule in rules())
    for name, (fires, *_, clears) in tests.items():
        assert fires["expr"] == clears["expr"]
        assert f'alertname="{name}"' in fires["expr"]
        assert 'alertstate="firing"' in fires["expr"]
        assert ([each["value"] for each in fires["exp_samples"]], clears["exp_samples"]) == ([1], [])


def test_alerts_and_dashboard_ask_for_metrics_that_are_served() -> None:
    """Rules and dashboard use existing metrics only, and the dashboard shows every metric."""
    named = {name for text in expressions() for name in re.findall(r"\bseptet_[a-z_]+(?:\:\w+)?", text)}
    assert named - served() == {rule["record"] for rule in rules("record")}
    shown = {
        name
        for panel in panels()
        for each in panel["targets"]
        for name in re.findall(r"\bseptet_[a-z_]+", each["expr"])
    }
    assert {metric.name for metric in METRICS} == {
        metric.name for metric in METRICS if any(name.startswith(metric.name) for name in shown)
    }


@pytest.mark.needs("promtool")
def test_prometheus_can_read_what_the_dashboard_asks(tmp_path: Path) -> None:
    """Each panel's expression is valid for Prometheus, with Grafana's variable replaced."""
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    recorded = [
        {"record": f"panel:{number}", "expr": text.replace("$__rate_interval", "5m")}
        for number, text in enumerate(asked)
    ]
    rules_file = tmp_path / "panels.yml"
    rules_file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}), encoding="utf-8")
    promtool("check", "rules", rules_file)


def test_each_alert_and_each_metric_stands_in_the_documents() -> None:
    """The page has a section for each alert, in the rules' order, and a row for each metric."""
    page = PAGE.read_text(encoding="utf-8")
    for rule in rules():
        name = rule["alert"]
        assert rule["annotations"]["runbook"] == f"docs/observability.md#{name.lower()}"
        assert f"\n### {name}\n" in page
    assert re.findall(r"^### (\w+)$", page, re.MULTILINE) == [rule["alert"] for rule in rules()]
    assert re.findall(r"^\| `(septet_\w+)` \|", page, re.MULTILINE) == [metric.exposed for metric in METRICS]
