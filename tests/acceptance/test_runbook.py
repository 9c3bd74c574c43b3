"""The runbook: each of its commands runs, in its order, on a machine for this test alone."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from fakes.septet_command import PROGRAMS, Septet, free_ports
from fakes.shell_programs import write_program
from fakes.waiting import until

_DEBIAN: Final = Path("/usr/lib/postgresql")
_OWNER: Final = "postgres" if os.geteuid() == 0 else None
_LOCALE: Final = {"LC_ALL": "C"}


@contextmanager
def postgres() -> Iterator[dict[str, str]]:
    """Run an empty server during the block, and yield the environment of its clients."""
    programs = _programs()
    with TemporaryDirectory(prefix="septet-postgres-") as place:
        folder, data = Path(place), Path(place) / "data"
        if _OWNER is not None:
            shutil.chown(folder, _OWNER)
        subprocess.run(
            [programs / "initdb", "--no-sync", "--auth=trust", "--username=temporal", "--pgdata", data],
            user=_OWNER,
            env=_LOCALE,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        found = {
            "PGHOST": str(folder),
            "PGUSER": "temporal",
            "PATH": f"{programs}:{os.environ['PATH']}",
            **_LOCALE,
        }
        with subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="],
            user=_OWNER,
            env=_LOCALE,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                until(lambda: process.poll() is None and _is_ready(found))
                yield found
            finally:
                process.terminate()


def _programs() -> Path:
    known = shutil.which("initdb")
    if known is not None:
        return Path(known).resolve().parent
    found = [path.parent for path in _DEBIAN.glob("*/bin/initdb")]
    assert found, "PostgreSQL is missing: apt-get install postgresql"
    return max(found)


def _is_ready(env: dict[str, str]) -> bool:
    return subprocess.run(["pg_isready", "--quiet"], env=env, check=False).returncode == 0


ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "operations" / "runbook.md").read_text(encoding="utf-8")
DATABASES: Final = ("temporal", "temporal_visibility")
_LINE: Final = 'echo "+ line $LINENO: $BASH_COMMAND" >&2'
_SEPTET: Final = """\
#!/bin/sh
# `septet up` on the ports of this test.
if [ "$1" = up ]; then shift; set -- up {options} "$@"; fi
exec "{program}" "$@"
"""


def bash_blocks(heading: str) -> list[str]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.mark.release
@pytest.mark.recovery
@pytest.mark.timeout(600)
def test_every_command_of_the_runbook_works(tmp_path: Path) -> None:
    """The commands to start, scale, drain, restore, rotate, back up and promote run as written, except for the ports."""
    port, ui, api = free_ports(3)
    septet = Septet(tmp_path / "machine")
    options = f"--port {port} --ui-port {ui} --api-port {api}"
    own = write_program(
        tmp_path / "bin" / "septet", _SEPTET.format(options=options, program=PROGRAMS / "septet")
    ).parent
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    script = "\n".join(blocks).replace("127.0.0.1:7233", f"127.0.0.1:{port}")
    folder = tmp_path / "ops"
    folder.mkdir()
    path = f"{own}:{PROGRAMS}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"trap '{_LINE}' DEBUG\n{script}"],
            cwd=folder,
            env={**septet.env, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=560,
            check=False,
        )
    finally:
        septet.end_all()
        Septet(folder, {"SEPTET_STATE_DIR": str(folder / "host-b")}).end_all()
    assert done.returncode == 0, f"{done.stderr[-3000:]}\n{done.stdout[-2000:]}"
    assert len(blocks) >= 12
    assert (folder / "restored").is_dir()


@pytest.mark.release
def test_a_shared_servers_databases_come_back_with_what_a_host_had(tmp_path: Path) -> None:
    """The commands for PostgreSQL run as written and restore the state, on a new server too."""
    backup, restore = bash_blocks("Back up and restore")
    (tmp_path / "backups").mkdir()
    host = Septet(tmp_path / "host-a")
    snapshot = host.state / "vaults" / "snapshot"
    snapshot.parent.mkdir(parents=True)
    (host.state / "host-id").write_text("host-a\n", encoding="ascii")
    snapshot.write_text("before", encoding="ascii")
    with postgres() as clients:
        env = {**host.env, **clients, "PATH": f"{PROGRAMS}:{clients['PATH']}"}

        def run(script: str) -> str:
            argv = ["bash", "-euo", "pipefail", "-c", script.replace("/backups", str(tmp_path / "backups"))]
            done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        def everywhere(sql: str) -> list[str]:
            asking = "psql --no-psqlrc --quiet --tuples-only --no-align --dbname"
            return [run(f"{asking} {name} --command '{sql}'").strip() for name in DATABASES]

        for name in DATABASES:
            run(f"createdb {name}")
        everywhere("CREATE TABLE executions (id int PRIMARY KEY); INSERT INTO executions VALUES (1), (2)")
        run(backup)
        everywhere("DELETE FROM executions WHERE id = 1; INSERT INTO executions VALUES (3); CREATE TABLE later ()")
        snapshot.write_text("after", encoding="ascii")
        run(restore)
        assert everywhere("SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM executions") == ["1 2", "1 2"]
        assert everywhere("SELECT count(*) FROM pg_tables WHERE tablename = $$later$$") == ["0", "0"]
        for name in DATABASES:
            run(f"dropdb {name}")
        run(restore)
        assert everywhere("SELECT count(*) FROM executions") == ["2", "2"]
    assert snapshot.read_text(encoding="ascii") == "before"
