"""The compose file's services have no more ports, rights and secrets than they need."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

_ROOT = Path(__file__).parents[3]
_FILE = _ROOT / "docker-compose.yml"
SERVICES = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["services"]
FILES = [_FILE, *_ROOT.glob("docker-compose.*.yml"), *_ROOT.glob("docker/trial/*.yml")]
"""The compose file, and the files that extend it."""

CAPABILITIES = {"postgres": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]}
"""The capabilities of a service's first process: as root it hands the data's folder to its user and becomes it."""
SIZE = re.compile(r"(\$\{[A-Z]+_MEMORY:-)?[1-9][0-9]*[mg](?(1)\})")
SECRET = re.compile("PASSWORD|PWD|PASS$|SECRET|TOKEN|KEY|AUTH", re.IGNORECASE)


@pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if "ports" in service])
def test_published_ports_answer_this_machine_alone(name: str) -> None:
    """Published ports are bound to loopback, because Docker would otherwise use every address."""
    assert all(str(port).startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_gains_no_right_and_has_limits(name: str) -> None:
    """A service has only the capabilities above, and limits of memory and processes."""
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == CAPABILITIES.get(name, [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert SIZE.fullmatch(service["mem_limit"])
    assert 0 < service["pids_limit"] <= 8192
    assert service.keys().isdisjoint({"privileged", "pid", "ipc", "network_mode", "userns_mode", "devices"})


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_is_told_a_password(name: str) -> None:
    """A password is a file below `/run/secrets`; no variable, command or build holds one."""
    service = SERVICES[name]
    told = {key: value for key, value in service.get("environment", {}).items() if SECRET.search(key)}
    assert told == ({"POSTGRES_PASSWORD_FILE": "/run/secrets/postgres_password"} if name == "postgres" else {})
    lines = [service.get(key, "") for key in ("command", "entrypoint", "env_file", "labels")]
    assert not SECRET.search(str([*lines, (service.get("build") or {}).get("args")]))


def test_each_installation_makes_a_password_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    """`docker/make-secrets` makes a password once, in the owner's folder outside git and images."""
    declared = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["secrets"]
    assert declared == {"postgres_password": {"file": "./docker/database/password"}}
    made = []
    for installation in ("one", "other"):
        folder = tmp_path / installation / "docker"
        folder.mkdir(parents=True)
        script = shutil.copy(_ROOT / "docker" / "make-secrets", folder)
        file = folder.parent / declared["postgres_password"]["file"]
        for _ in range(2):
            subprocess.run([script], check=True, capture_output=True)
            made.append(file.read_text(encoding="ascii"))
        assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o444)
    assert made[0] == made[1] != made[2] == made[3]
    assert all(re.fullmatch("[A-Za-z0-9]{20,}", password) for password in made)
    for name, line in ((".gitignore", "docker/database/"), (".dockerignore", "docker/database")):
        assert line in (_ROOT / name).read_text(encoding="utf-8").splitlines()


def test_temporals_web_ui_starts_when_it_is_asked_for_and_changes_nothing() -> None:
    """The web UI starts only on request and cannot change workflows, because it has no login."""
    ui = SERVICES["ui"]
    assert ui["profiles"] == ["ui"]
    assert ui["environment"]["TEMPORAL_DISABLE_WRITE_ACTIONS"] == "true"
    assert not any("ui" in service.get("depends_on", {}) for service in SERVICES.values())


def test_every_service_of_ours_has_the_keys_except_the_one_that_runs_agents() -> None:
    """All services of Septet get the keys of webhooks, sealing and Temporal, except the runner."""
    ours = {name for name, service in SERVICES.items() if str(service["image"]).startswith("septet:")}
    assert {"worker", "api", "runner"} < ours
    with_keys = {name for name in ours if "./docker/secrets:/run/secrets:ro" in SERVICES[name].get("volumes", ())}
    assert with_keys == ours - {"runner"}


def networks_of(service: str) -> set[str]:
    """Return the networks of a service in all files, or the default network."""
    files = [yaml.safe_load(file.read_text(encoding="utf-8"))["services"] for file in FILES]
    return {name for file in files for name in file.get(service, {}).get("networks", ())} or {"default"}


def test_a_new_database_has_room_to_grow() -> None:
    """The number of shards cannot change later, and the image's four are too few for production."""
    assert SERVICES["temporal"]["environment"]["NUM_HISTORY_SHARDS"] == "512"


def test_agents_share_a_network_with_no_other_service() -> None:
    """The runner has a network of its own with the internet, and reaches neither Temporal nor the database."""
    others = {name: networks_of(name) for name in SERVICES.keys() - {"runner"}}
    assert [name for name, networks in others.items() if networks & networks_of("runner")] == []
    assert others["worker"] & others["temporal"]
    declared = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["networks"]
    assert {name: (declared[name] or {}).get("internal") for name in networks_of("runner")} == {"agents": None}
    assert not any(name.startswith("TEMPORAL_") for name in SERVICES["runner"]["environment"])


def test_agents_run_what_they_have_built_in_tmp_and_home() -> None:
    """The runner's tmpfs folders allow programs, which `go test` and test scripts need."""
    options = {
        place: how.split(",") for place, _, how in (each.partition(":") for each in SERVICES["runner"]["tmpfs"])
    }
    assert [place for place, how in options.items() if "exec" in how] == ["/tmp", "/home/septet"]


def test_nothing_but_temporals_web_ui_can_write_to_its_image() -> None:
    """All images are read-only except the web UI's, and each read-only service has a `/tmp`."""
    read_only = {name for name, service in SERVICES.items() if service.get("read_only") is True}
    assert SERVICES.keys() - read_only == {"ui"}
    assert {
        name for name in read_only if not any(each.startswith("/tmp") for each in SERVICES[name]["tmpfs"])
    } == set()
