"""A real PostgreSQL on its own socket, as a shared Temporal server uses."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

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
