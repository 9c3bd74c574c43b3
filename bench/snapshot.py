"""A snapshot of a tree of 10,000 files with 50 changes, until it is on disk."""

import os
import random
import time
from pathlib import Path

from bench.figure import Figure, median, percentile
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import scratch
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.snapshots.take import seed, take
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.vault import prepare
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.settings import MIB, Settings
from septet.state import StateDir

FILES = 10_000
CHANGES = 50
WARM_TARGET_MS = 120.0
COLD_TARGET_MS = 300.0
IGNORED_LIMIT_BYTES = 50 * MIB
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def measure(pace: Pace) -> list[Figure]:
    """Measure with the files in memory, and without if this user may empty the caches."""
    chance = random.Random(pace.seed)  # noqa: S311 -- the same changes each time are the point
    with scratch() as folder:
        place = _opened(folder, pace)
        _one(place, chance)
        warm = [_one(place, chance) for _ in range(pace.times(40, 10))]
        cold = [_one(place, chance, cold=True) for _ in range(pace.times(20, 5))] if _may_drop() else []
        git = [_git_add(place, chance) for _ in range(pace.times(10, 3))]
    what = f"{FILES:,} files, {CHANGES} changes, {len(warm)} times"
    beside = "git add --all and write-tree, without a vault"
    figures = [
        Figure("warm p50", median(warm), "ms", baseline=median(git), beside=beside, note=what),
        Figure("warm p95", percentile(warm, 95), "ms", WARM_TARGET_MS, note=what),
    ]
    if cold:
        note = f"page cache, dentries and inodes dropped each time, git's program read again, {len(cold)} times"
        figures.append(Figure("cold p95", percentile(cold, 95), "ms", COLD_TARGET_MS, note=note))
    else:
        print("snapshot: cold is not measured, for this user may not drop the page cache.")
    return figures


def _opened(folder: Path, pace: Pace) -> Place:
    settings = Settings(state_dir=folder / "state")
    state, env = StateDir(settings.state_dir), settings.git_env
    state.prepare()
    origin = make_repository(folder / "origin.git", FILES, pace.seed, env)
    address = parse_address(str(origin), home=folder)
    place = open_workspace(state, address, OrderStart("wo-bench", "bench"), env=env)
    prepare(place)
    seed(place, ignored_limit_bytes=IGNORED_LIMIT_BYTES)
    return place


def _one(place: Place, chance: random.Random, *, cold: bool = False) -> float:
    """Change files, take a snapshot and return its milliseconds."""
    _change(place.worktree, chance)
    if cold:
        os.sync()
        _DROP_CACHES.write_text("3\n", encoding="ascii")
        place.git.try_run("version")  # a worker's git is never cold, and only the tree is measured
    begin = time.perf_counter()
    take(place, "checkpoint", SnapshotOptions("bench", IGNORED_LIMIT_BYTES))
    return (time.perf_counter() - begin) * 1000


def _git_add(place: Place, chance: random.Random) -> float:
    _change(place.worktree, chance)
    begin = time.perf_counter()
    place.git.run("add", "--all")
    place.git.run("write-tree")
    return (time.perf_counter() - begin) * 1000


def _change(worktree: Path, chance: random.Random) -> None:
    """Write 50 files: 45 existing and 5 new ones."""
    for path in chance.sample(sorted((worktree / "src").glob("*/module*.txt")), CHANGES - 5):
        path.write_text(chance.randbytes(1000).hex(), encoding="ascii")
    for _ in range(5):
        path = worktree / "src" / f"new-{chance.randrange(10**9):09}.txt"
        path.write_text(chance.randbytes(1000).hex(), encoding="ascii")


def _may_drop() -> bool:
    return os.access(_DROP_CACHES, os.W_OK)
