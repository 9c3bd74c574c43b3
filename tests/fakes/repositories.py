"""Real repositories for tests, made with real git."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PERSON = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in {"NAME": "Ada", "EMAIL": "ada@example.org"}.items()
}


ALLOW: Final = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
}
"""The environment that lets git fetch a submodule of this machine."""


def git_env(home: Path) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}


def git(
    folder: Path,
    *args: str,
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    check: bool = True,
    person: bool = True,
) -> str:
    """Run git in `folder` as a person, or without an identity, and return its output."""
    plain = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    completed = subprocess.run(
        ["git", *args],
        cwd=folder,
        env={**plain, **(_PERSON if person else {}), **(env or {})},
        input=stdin,
        capture_output=True,
        check=False,
    )
    if check and completed.returncode != 0:
        message = f"git {args} failed: {completed.stderr.decode(errors='replace')}"
        raise AssertionError(message)
    return completed.stdout.decode(errors="surrogateescape").strip()


@dataclass(frozen=True)
class Origin:
    bare: Path
    checkout: Path

    def push(self, files: Mapping[str, bytes | str], branch: str | None = None, message: str = "change") -> str:
        """Commit `files` to `branch` (the default branch when absent), push, and return the commit."""
        if branch is not None:
            git(self.checkout, "checkout", "-q", "-B", branch)
        for name, content in files.items():
            path = self.checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "--allow-empty", "-m", message)
        git(self.checkout, "push", "-q", "origin", "HEAD")
        return git(self.checkout, "rev-parse", "HEAD")

    def rewrite(self, files: Mapping[str, str | None]) -> str:
        """Replace the last commit of main by one with these files, or without those of `None`; return the replaced."""
        replaced = self.sha("main")
        git(self.checkout, "checkout", "-q", "--detach", replaced)
        for name, content in files.items():
            path = self.checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if content is None else path.write_text(content)
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "--amend", "--allow-empty", "-m", "written anew")
        git(self.checkout, "push", "-q", "--force", "origin", "HEAD:main")
        return replaced

    def sha(self, branch: str) -> str:
        return git(self.bare, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", check=False)


def make_origin(folder: Path, name: str = "repo.git", default_branch: str = "main") -> Origin:
    """Make an empty bare repository `folder/name` and a checkout beside it."""
    bare, checkout = folder / name, folder / f"{name}-checkout"
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "--bare", f"--initial-branch={default_branch}", str(bare))
    git(folder, "clone", "-q", str(bare), str(checkout))
    git(checkout, "checkout", "-q", "-B", default_branch)
    return Origin(bare, checkout)


def copy_origin(origin: Origin, folder: Path) -> Origin:
    """Copy an origin into `folder`, which is far faster than making one; the copy's checkout pushes to the copy."""
    copied = Origin(folder / origin.bare.name, folder / origin.checkout.name)
    shutil.copytree(origin.bare, copied.bare, symlinks=True)
    shutil.copytree(origin.checkout, copied.checkout, symlinks=True)
    git(copied.checkout, "config", "remote.origin.url", str(copied.bare))
    return copied
