"""The manifests for Kubernetes: their schema, and the bounds of their pods."""

import re
import textwrap
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from clients.cli.commands import SEPTET
from septet.settings import Settings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
FOLDER = ROOT / "deploy/kubernetes"
BASE = FOLDER / "base"
API = FOLDER / "api"


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    for file in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        if file.endswith(".yaml"):
            yield from yaml.safe_load_all((folder / file).read_text())


def pods() -> dict[str, dict[str, Any]]:
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in [*documents(BASE), *documents(API)]
        if "template" in each.get("spec", {})
    }


def containers() -> dict[str, dict[str, Any]]:
    return {container["name"]: container for pod in pods().values() for container in pod["containers"]}


@pytest.mark.parametrize(
    "resource", [*documents(BASE), *documents(API)], ids=lambda each: f"{each['kind']}/{each['metadata']['name']}"
)
def test_a_resource_is_what_the_schema_of_kubernetes_says(resource: dict[str, Any]) -> None:
    """The schema of Kubernetes accepts each resource, without unknown or missing fields."""
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("folder", [BASE, API, FOLDER / "keda"], ids=lambda each: each.name)
def test_a_kustomization_names_every_file_beside_it(folder: Path) -> None:
    """A kustomization names every manifest in its folder, so that each manifest is applied."""
    named = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    files = {file.name for file in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert {name for name in named if name.endswith(".yaml")} == files


@pytest.mark.parametrize("name", sorted(pods()))
def test_pods_keep_to_the_restricted_standard(name: str) -> None:
    """Each pod meets the restricted standard; the namespace would start no other pod."""
    pod = pods()[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    kinds = {next(iter(set(volume) - {"name"})) for volume in pod["volumes"]}
    assert kinds <= {"emptyDir", "secret"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]


def test_keys_are_mounted_where_no_agent_runs() -> None:
    """All containers have the keys except the runner's, where agents run; the runner has no settings either."""
    with_keys = {
        name
        for name, container in containers().items()
        if "keys" in {each["name"] for each in container["volumeMounts"]}
    }
    assert with_keys == {"worker", "register", "promote", "api"} == containers().keys() - {"runner"}
    assert "envFrom" not in containers()["runner"]


@pytest.mark.parametrize("folder", [BASE, API], ids=lambda each: each.name)
def test_no_manifest_holds_a_key(folder: Path) -> None:
    """No manifest has a Secret or the value of a key: the administrator adds both."""
    resources = list(documents(folder))
    assert "Secret" not in {each["kind"] for each in resources}
    settings = [each["data"] for each in resources if each["kind"] == "ConfigMap"]
    pods_here = [each["spec"]["template"]["spec"] for each in resources if "template" in each.get("spec", {})]
    given = [each for pod in pods_here for container in pod["containers"] for each in container.get("env", ())]
    names = [*(name for data in settings for name in data), *(each["name"] for each in given if "value" in each)]
    assert [name for name in names if re.search("PASS|SECRET|TOKEN|KEY", name)] == []


def test_worker_and_runner_of_a_pod_share_what_they_lease() -> None:
    """Worker and runner share the slot's folders and no other folder."""
    mounts = {
        name: {each["mountPath"]: each["name"] for each in containers()[name]["volumeMounts"]}
        for name in ("worker", "runner")
    }
    shared = {path for path, volume in mounts["worker"].items() if mounts["runner"].get(path) == volume}
    assert shared == {"/var/lib/septet/slots", "/var/lib/septet/homes"}


def test_commands_and_settings_exist() -> None:
    """Each container starts a command of `septet`, and each variable is a setting or one of Temporal's."""
    settings = {f"SEPTET_{name.upper()}" for name in Settings.model_fields}
    settings_map = next(each for each in documents(BASE) if each["kind"] == "ConfigMap")["data"]
    for container in containers().values():
        assert container["args"][0] in SEPTET.commands
        names = {each["name"] for each in container.get("env", ())} | settings_map.keys()
        assert {name for name in names if not name.startswith("TEMPORAL_")} <= settings


def test_the_limits_of_a_runner_hold_its_agents() -> None:
    """The runner has at least 600 MB for each agent, and an agent's limit follows from the container's limit."""
    settings_map = next(each for each in documents(BASE) if each["kind"] == "ConfigMap")["data"]
    mebibytes = int(containers()["runner"]["resources"]["limits"]["memory"].removesuffix("Gi")) * 1024
    assert int(settings_map["SEPTET_MAX_AGENTS"]) * 600 <= mebibytes
    assert "SEPTET_MEMORY_LIMIT_MIB" not in settings_map
    assert "memory_bytes" not in Settings().guest_resources


def test_the_overlay_on_the_page_changes_what_the_base_has() -> None:
    """The page's overlay names the base's folder, image, settings and set."""
    (block,) = re.findall(r"^ +# kustomization\.yaml\n(.*?)^ +```$", PAGE, re.MULTILINE | re.DOTALL)
    overlay = yaml.safe_load(textwrap.dedent(block))
    assert [ROOT / each for each in overlay["resources"]] == [BASE]
    assert {each["name"] for each in overlay["images"]} == {each["image"] for each in containers().values()}
    settings_map = next(each for each in documents(BASE) if each["kind"] == "ConfigMap")
    (patch,) = (yaml.safe_load(each["patch"]) for each in overlay["patches"])
    namespace = yaml.safe_load((BASE / "kustomization.yaml").read_text())["namespace"]
    assert (patch["kind"], patch["metadata"]) == ("ConfigMap", settings_map["metadata"] | {"namespace": namespace})
    assert patch["data"].keys() <= settings_map["data"].keys()
    (replicas,) = re.findall(r"`(replicas: .*?)` in the overlay", PAGE)
    sets = {each["metadata"]["name"] for each in documents(BASE) if each["kind"] == "StatefulSet"}
    assert {each["name"] for each in yaml.safe_load(replicas)["replicas"]} == sets


def test_a_scaled_set_is_the_one_of_the_base_and_follows_the_agents_at_work() -> None:
    """KEDA scales the base's set by the agents in its queues, and adds a pod before all agents are busy."""
    (scaled,) = documents(FOLDER / "keda")
    target = scaled["spec"]["scaleTargetRef"]
    sets = {each["metadata"]["name"] for each in documents(BASE) if each["kind"] == target["kind"]}
    assert target["name"] in sets
    data = next(each for each in documents(BASE) if each["kind"] == "ConfigMap")["data"]
    metadata, backlog = (each["metadata"] for each in scaled["spec"]["triggers"])
    assert backlog["taskQueue"] == data["SEPTET_TASK_QUEUE"]
    assert (backlog["endpoint"], backlog["namespace"]) == (data["TEMPORAL_ADDRESS"], data["TEMPORAL_NAMESPACE"])
    assert f'task_queue=~"{data["SEPTET_TASK_QUEUE"]}-host-[0-9a-f]+"' in metadata["query"]
    tolerance = 1.1
    assert int(metadata["threshold"]) * tolerance < int(data["SEPTET_MAX_AGENTS"])


def test_an_apply_leaves_how_many_pods_there_are_to_keda() -> None:
    """The overlay removes `replicas` from the base's set, so that an apply does not undo KEDA's scaling."""
    (scaled,) = documents(FOLDER / "keda")
    patch, _ = yaml.safe_load((FOLDER / "keda/kustomization.yaml").read_text())["patches"]
    target = scaled["spec"]["scaleTargetRef"]
    assert patch["target"] == {"kind": target["kind"], "name": target["name"]}
    assert yaml.safe_load(patch["patch"]) == [{"op": "remove", "path": "/spec/replicas"}]


def test_where_keda_scales_workers_serve_what_it_counts() -> None:
    """The overlay for KEDA turns the metrics on, at the port of the worker's container."""
    _, patch = yaml.safe_load((FOLDER / "keda/kustomization.yaml").read_text())["patches"]
    settings_map = yaml.safe_load(patch["patch"])
    (port,) = containers()["worker"]["ports"]
    assert (settings_map["kind"], settings_map["metadata"]["name"]) == ("ConfigMap", "septet-settings")
    assert settings_map["data"] == {"SEPTET_METRICS": f"0.0.0.0:{port['containerPort']}"}


def rules(direction: str) -> list[dict[str, Any]]:
    policy = next(each for each in documents(BASE) if each["kind"] == "NetworkPolicy")
    return list(policy["spec"][direction])


def test_pods_ask_for_names_where_nodes_keep_a_cache_of_them_and_reach_nothing_else_of_a_node() -> None:
    """Pods reach the node's DNS cache at port 53, and not the metadata service beside the cache."""
    cache, metadata = ip_address("169.254.20.10"), ip_address("169.254.169.254")
    reached = [
        (address, {(port["protocol"], port["port"]) for port in rule["ports"]})
        for rule in rules("egress")
        for block in (peer["ipBlock"] for peer in rule["to"] if "ipBlock" in peer)
        for address in (cache, metadata)
        if address in ip_network(block["cidr"])
        and not any(address in ip_network(each) for each in block.get("except", ()))
    ]
    assert reached == [(cache, {("UDP", 53), ("TCP", 53)})]


def test_the_patch_on_the_page_opens_the_rule_for_names() -> None:
    """The page's patch adds the address of the DNS service to the rule for port 53."""
    (block,) = re.findall(r"^ +- target: \{kind: NetworkPolicy.*?(?=^ +```$)", PAGE, re.MULTILINE | re.DOTALL)
    (patch,) = yaml.safe_load(textwrap.dedent(block))
    policy = next(each for each in documents(BASE) if each["kind"] == "NetworkPolicy")
    assert patch["target"] == {"kind": "NetworkPolicy", "name": policy["metadata"]["name"]}
    (operation,) = yaml.safe_load(patch["patch"])
    assert (operation["op"], operation["path"]) == ("add", "/spec/egress/0/to/-")
    assert {port["port"] for port in rules("egress")[0]["ports"]} == {53}
    assert str(ip_network(operation["value"]["ipBlock"]["cidr"])).endswith("/32")


def test_an_outage_of_the_server_restarts_no_worker() -> None:
    """A worker is ready after contact with the server, and alive while its process runs, even in an outage."""
    worker = containers()["worker"]
    ready, alive = (worker[f"{probe}Probe"]["exec"]["command"] for probe in ("readiness", "liveness"))
    assert alive == [*ready, "--alive"]
    assert (ROOT / "docker" / Path(ready[-1]).name).is_file()
    assert worker["livenessProbe"]["periodSeconds"] * worker["livenessProbe"]["failureThreshold"] >= 120


def test_an_outage_of_the_server_holds_up_no_drain() -> None:
    """Unready pods may leave their node during an outage of the server."""
    (budget,) = (each for each in documents(BASE) if each["kind"] == "PodDisruptionBudget")
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_workers_reach_temporal_cloud_and_a_server_in_the_cluster() -> None:
    """Port 7233 is open to public addresses and to the namespace of a server."""
    open_to = [rule["to"] for rule in rules("egress") if 7233 in {port["port"] for port in rule["ports"]}]
    assert sorted(next(iter(peer)) for rule in open_to for peer in rule) == [
        "ipBlock", "ipBlock", "namespaceSelector",
    ]  # fmt: skip


def test_prometheus_alone_can_connect_to_the_port_that_serves_metrics() -> None:
    """One rule lets only the monitoring namespace connect, at the port of the metrics."""
    (rule,) = rules("ingress")
    (port,) = containers()["worker"]["ports"]
    assert [each["port"] for each in rule["ports"]] == [port["containerPort"]]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def test_a_cluster_takes_what_keda_makes_of_the_scaling() -> None:
    """The autoscaler that KEDA makes is valid: periods of at most 30 minutes, a window of at most an hour."""
    (scaled,) = documents(FOLDER / "keda")
    spec = scaled["spec"]
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    target = {"scaleTargetRef": spec["scaleTargetRef"], "maxReplicas": spec["maxReplicaCount"]}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": scaled["metadata"],
        "spec": target | {"minReplicas": spec["minReplicaCount"], "behavior": behavior},
    }
    kubernetes_validate.validate(autoscaler, kubernetes_validate.latest_version(), strict=True)
    assert all(policy["periodSeconds"] <= 1800 for policy in behavior["scaleDown"]["policies"])
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] <= 3600
    assert all(isinstance(value, str) for each in spec["triggers"] for value in each["metadata"].values())
