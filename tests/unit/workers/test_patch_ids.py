"""The patches that a build has."""

import base64
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workers.builds.build_id import own_patches, patches_below

ROOT = Path(__file__).resolve().parents[3]


def test_the_patches_of_this_build_are_those_that_recorded_histories_have_passed() -> None:
    """The patches in the code are exactly the patches in the recorded histories."""
    assert own_patches() == recorded_patches()


def recorded_patches() -> set[str]:
    histories = [*(ROOT / "tests" / "replay").rglob("*.json")]
    return {patch for path in histories for patch in markers_of(json.loads(path.read_text("utf-8"))["events"])}


def markers_of(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        marker = event.get("markerRecordedEventAttributes", {})
        if marker.get("markerName") == "core_patch":
            (payload,) = marker["details"]["patch-data"]["payloads"]
            yield json.loads(base64.b64decode(payload["data"]))["id"]


def test_ids_are_found_as_texts_as_constants_and_as_constants_of_another_module(tmp_path: Path) -> None:
    """A patch's id is found as a text, a constant or another module's constant; a computed id is refused."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "__init__.py").write_text("")
    (tmp_path / "workflows" / "names.py").write_text('THIRD = "third"\n')
    order = tmp_path / "workflows" / "order.py"
    order.write_text(
        "from workflows.names import THIRD as T\nfrom typing import Final\n_TWO: Final = 'second'\n"
        "def run():\n    workflow.patched('first')\n    workflow.deprecate_patch(_TWO)\n    return workflow.patched(T)\n"
    )
    assert patches_below(tmp_path) == {"first", "second", "third"}
    other = tmp_path / "other"
    (other / "workflows").mkdir(parents=True)
    (other / "workflows" / "order.py").write_text("def run(name):\n    workflow.patched(f'{name}-1')\n")
    with pytest.raises(ValueError, match="not a constant: workflows.order, line 2"):
        patches_below(other)


def test_recorded_histories_retire_with_the_releases_that_replay_no_longer_holds() -> None:
    """No recorded history is older than the two releases before this release, as docs/patches.md says."""
    today = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    oldest = release_of(today)[1] - 2
    recorded = {path.parent.name for path in (ROOT / "tests" / "replay").rglob("*.json")}
    assert [name for name in sorted(recorded) if release_of(name) < (release_of(today)[0], oldest)] == []


def release_of(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def test_the_page_of_patches_lists_each_patch_with_its_release() -> None:
    """docs/patches.md lists exactly the patches of the code, each with its release."""
    page = (ROOT / "docs" / "patches.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\d+\.\d+\.\d+) \| \S", page, re.MULTILINE)
    assert sorted(patch for patch, _ in rows) == sorted(own_patches())
