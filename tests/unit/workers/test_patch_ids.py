"""A build knows which patches it has."""

import base64
import json
import re
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workers.patch_ids import earlier_patches, own_patches, patches_below

ROOT = Path(__file__).resolve().parents[3]
WHEELS = sorted((ROOT / "tests" / "data" / "releases").glob("*.whl"))


def test_every_patch_that_a_recorded_history_holds_is_one_of_this_build() -> None:
    """The markers of the histories that replay must pass are patches that the code names."""
    recorded = recorded_patches()
    assert "readable-activity-ids" in recorded
    assert recorded <= own_patches()


def recorded_patches() -> set[str]:
    """Return the patches that the recorded histories have passed."""
    histories = [*(ROOT / "tests" / "replay").rglob("*.json")]
    return {patch for path in histories for patch in markers_of(json.loads(path.read_text("utf-8"))["events"])}


def markers_of(events: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the ids of the patches whose markers a history holds."""
    for event in events:
        marker = event.get("markerRecordedEventAttributes", {})
        if marker.get("markerName") == "core_patch":
            (payload,) = marker["details"]["patch-data"]["payloads"]
            yield json.loads(base64.b64decode(payload["data"]))["id"]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name.split("-")[1])
def test_the_patches_of_earlier_releases_are_those_of_their_wheels(wheel: Path, tmp_path: Path) -> None:
    """What is said of a release that cannot say it itself is what its code has."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    release = wheel.name.split("-")[1]
    assert earlier_patches(f"{release}-0a1b2c3d") == patches_below(tmp_path)


def test_of_a_build_with_a_name_of_its_own_nothing_is_known() -> None:
    """Neither a later release nor a build that a person named is taken for an earlier release."""
    assert earlier_patches("99.0.0-0a1b2c3d") is None
    assert earlier_patches("mine") is None


def test_ids_are_found_as_texts_as_constants_and_as_constants_of_another_module(tmp_path: Path) -> None:
    """Wherever the id stands, the patch is found, behind a function of ours too; one put together is refused."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "__init__.py").write_text("")
    (tmp_path / "workflows" / "names.py").write_text('THIRD = "third"\n')
    order = tmp_path / "workflows" / "order.py"
    order.write_text(
        "from workflows.names import THIRD as T\nfrom typing import Final\n_TWO: Final = 'second'\n"
        "def run():\n    workflow.patched('first')\n    workflow.deprecate_patch(_TWO)\n    return workflow.patched(T)\n"
    )
    (tmp_path / "workflows" / "ways.py").write_text(
        "def has(name):\n    return workflow.patched('all') or workflow.patched(name)\n"
    )
    (tmp_path / "workflows" / "other.py").write_text(
        "from workflows.ways import has\ndef run():\n    return has('fourth')\n"
    )
    assert patches_below(tmp_path) == {"all", "first", "second", "third", "fourth"}
    other = tmp_path / "other"
    (other / "workflows").mkdir(parents=True)
    (other / "workflows" / "order.py").write_text("def run(name):\n    workflow.patched(f'{name}-1')\n")
    with pytest.raises(ValueError, match="not a constant: workflows.order, line 2"):
        patches_below(other)


def test_recorded_histories_retire_with_the_releases_that_replay_no_longer_holds() -> None:
    """A history stays as long as its release is one of the two before this one, and goes then: docs/patches.md."""
    today = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    oldest = release_of(today)[1] - 2
    recorded = {path.parent.name for path in (ROOT / "tests" / "replay").rglob("*.json")}
    assert [name for name in sorted(recorded) if release_of(name) < (release_of(today)[0], oldest)] == []


def release_of(version: str) -> tuple[int, int]:
    """Return major and minor."""
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def test_the_page_of_patches_lists_each_patch_with_its_release() -> None:
    """Whoever collapses patches finds on one page which are due; one that the code no longer has is not there."""
    page = (ROOT / "docs" / "patches.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\d+\.\d+\.\d+) \| \S", page, re.MULTILINE)
    assert sorted(patch for patch, _ in rows) == sorted(own_patches())


COVERED = {
    "one-patch-for-all": {
        "board", "delivers-cancels", "host-looks-at-pull-request", "late-cancel", "patience-of-rare-heartbeats",
        "plan-gate", "project-while-it-waits", "readable-activity-ids", "refuses-follow-pr", "reset-has-an-attribute",
        "row-in-memo", "row-once-a-stage", "told-at-a-reset", "told-of-silent-hosts", "watches-pull-request",
    },
}  # fmt: skip
"""By an id that covers many patches: those that its release asked for behind it."""


UNRECORDED = {"goes-on-beside"}
"""Of 0.1.0, before each patch had to have its history."""


def test_each_patch_that_no_other_id_covers_has_a_recorded_history() -> None:
    """Where none has passed a patch, replay does not hold what lies behind it; `make histories` records what is missing."""
    covered = set().union(*COVERED.values())
    assert own_patches() - covered - UNRECORDED <= recorded_patches()


def test_an_id_that_covers_many_patches_covers_those_of_its_own_release_alone() -> None:
    """A patch that is added later begins a new covering id: a run that has the one before must not take its way."""
    covering, behind = set(), set()
    for path in (ROOT / "workflows").rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        constants = dict(re.findall(r'^(\w+): Final = "([\w-]+)"$', code, re.MULTILINE))
        behind |= {constants[name] for name in re.findall(r"has_patch\((_\w+)\)", code)}
        covering |= {constants[name] for name in re.findall(r"workflow\.patched\((_\w+)\) or", code)}
    assert covering == {"one-patch-for-all"}
    assert behind == set().union(*(COVERED[each] for each in covering)), "see docs/patches.md: One marker for many"
