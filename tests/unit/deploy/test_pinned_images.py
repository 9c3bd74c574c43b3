"""The images that are pinned by the digest of their registry."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.shell_programs import write_program

ROOT = Path(__file__).parents[3]
DIGEST = "sha256:" + "a1" * 32
COMPOSE = """\
services:
  a:
    image: postgres:16.10
  b:
    image: temporalio/server:${TEMPORAL_VERSION:-1.31.0}
  c:
    image: &image septet:${SEPTET_VERSION:-latest}
"""
DOCKERFILE = "FROM python:3.12-slim AS packages\nFROM packages\n"


def pin(folder: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """Run the program on the files of a folder, with a `docker` that runs `answer`."""
    programs = folder / "programs"
    write_program(programs / "docker", f"#!/bin/sh\n{answer}\n")
    files = [str(folder / "Dockerfile"), str(folder / "compose.yml")]
    env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "pin-images"), *files],
        env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    (tmp_path / "compose.yml").write_text(COMPOSE, encoding="utf-8")
    return tmp_path


def test_each_public_image_gets_the_digest_that_its_registry_tells(folder: Path) -> None:
    """The digest follows the tag or its default, own images and stages stay, and a second run changes nothing."""
    for _ in range(2):
        done = pin(folder, f"echo {DIGEST}")
        assert done.returncode == 0, done.stderr
        compose = (folder / "compose.yml").read_text(encoding="utf-8")
        assert f"image: postgres:16.10@{DIGEST}\n" in compose
        assert f"image: temporalio/server:${{TEMPORAL_VERSION:-1.31.0@{DIGEST}}}\n" in compose
        assert "septet:${SEPTET_VERSION:-latest}\n" in compose
        assert (folder / "Dockerfile").read_text(encoding="utf-8") == DOCKERFILE.replace(
            "3.12-slim", f"3.12-slim@{DIGEST}"
        )


@pytest.mark.parametrize("answer", ["echo no route >&2; exit 1", "echo sha256:short", "true"])
def test_a_registry_that_tells_nothing_changes_nothing(folder: Path, answer: str) -> None:
    """Without a digest the files stay unchanged, and the error names the image."""
    done = pin(folder, answer)
    assert done.returncode == 1
    assert "postgres:16.10: " in done.stderr
    assert (folder / "compose.yml").read_text(encoding="utf-8") == COMPOSE
    assert (folder / "Dockerfile").read_text(encoding="utf-8") == DOCKERFILE


def test_no_action_is_named_by_a_branch() -> None:
    """Documents and deployments name Septet's action by a commit, which cannot move."""
    for path in (*(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").rglob("*.yml"), ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        assert "@main" not in text, path
        assert "@master" not in text, path
