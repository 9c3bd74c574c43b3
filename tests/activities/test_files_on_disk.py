import json
import re
from functools import cached_property
from pathlib import Path

from fakes.step_lab import StepLab

from septet.contracts.names import Step
from septet.state import StateDir

FROZEN = Path(__file__).parents[1] / "data" / "wire" / "files.json"
SANDBOX = "runs/wo-1/RUN/sandbox.json"
"""The record that exists only on a machine with a sandbox."""
GITS = re.compile(r"vaults/VAULT/(HEAD|config|info/|objects/|refs/)")


async def test_files_on_disk_keep_their_names_and_keys(lab: StepLab) -> None:
    """Files keep their names and keys, so a later release reads the state directory of an earlier release."""
    await lab.open_to(Step.CREATE_COMMIT, {"answer": {"commit_message": "bug: sum the prices"}})
    await lab.run(Step.CREATE_COMMIT)
    await lab.end_work(Step.CREATE_COMMIT)
    root = lab.parts.host.state.root
    files = {
        name: keys_in(path)
        for folder in ("runs", "vaults")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and not GITS.match(name := general(path.relative_to(root))) and name != SANDBOX
    }
    assert files == json.loads(FROZEN.read_text())["work order"]


def test_the_state_directory_keeps_its_names(tmp_path: Path) -> None:
    """Each file and folder at the top of the state directory keeps its name."""
    state = StateDir(tmp_path)
    paths = {
        str(path.relative_to(tmp_path))
        for name, member in vars(StateDir).items()
        if isinstance(member, cached_property) and isinstance(path := getattr(state, name), Path)
    }
    assert sorted(paths) == json.loads(FROZEN.read_text())["state directory"]


def general(path: Path) -> str:
    return re.sub(r"[^/]+\.git", "VAULT", re.sub(r"\d+-create_commit-1", "RUN", path.as_posix()))


def keys_in(path: Path) -> list[str] | None:
    if path.suffix not in {".json", ".jsonl"} or path.name == "stdout.jsonl":
        return None
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    return sorted({key for line in lines if line for key in json.loads(line)})
