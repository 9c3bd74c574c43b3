"""Toolchains on PATH are shown by their programs and libraries, without a login beside them."""

import os
import shutil
import time
from pathlib import Path

import pytest
from fakes.shell_programs import write_program

from septet.agents.clis.adapter import FOR_EVERY_AGENT
from septet.agents.guest.description import GuestFiles, World, describe
from septet.agents.guest.sandbox_parts import Binding
from septet.agents.guest.toolchains import TOOLCHAINS, find_toolchains, toolchain_paths

FILES = (
    ".cargo/bin/cargo", ".rustup/toolchains/stable/bin/rustc", ".rustup/settings.toml",
    ".pyenv/shims/python", ".pyenv/bin/pyenv", ".pyenv/libexec/pyenv-exec", ".pyenv/version",
    ".pyenv/versions/3.12.1/bin/python3.12", ".pyenv/versions/3.12.1/lib/libpython3.12.so",
    ".pyenv/versions/3.12.1/envs/app/pyvenv.cfg", ".pyenv/plugins/pyenv-virtualenv/shims/activate",
    ".rbenv/shims/ruby", ".rbenv/versions/3.3.0/bin/ruby",
    ".nvm/versions/node/v22.1.0/bin/node", ".nvm/versions/node/v22.1.0/lib/node_modules/npm/index.js",
    ".local/share/fnm/node-versions/v22.1.0/installation/bin/node",
    ".volta/bin/node", ".volta/tools/user/platform.json", ".volta/tools/image/node/22.1.0/bin/node",
    ".volta/tools/image/npm/10.2.0/package.json", ".volta/tools/image/packages/tsc/bin/tsc",
    ".local/share/uv/python/cpython-3.12.5-linux-x86_64-gnu/bin/python3.12", ".local/share/uv/tools/ruff/bin/ruff",
    ".local/bin/uv",
    ".asdf/shims/node", ".asdf/installs/nodejs/22.1.0/bin/node", ".asdf/plugins/nodejs/bin/list-bin-paths",
    ".local/share/mise/installs/go/1.22.0/bin/go",
    ".sdkman/candidates/java/21-tem/bin/java", ".sdkman/candidates/java/21-tem/conf/security/java.security",
    ".bun/bin/bun", ".deno/bin/deno",
)  # fmt: skip
LOGINS = (
    ".cargo/credentials.toml", ".cargo/config.toml", ".rustup/credentials", ".npmrc", ".pypirc", ".config/pip/pip.conf",
    ".pyenv/versions/3.12.1/pip.conf", ".pyenv/versions/3.12.1/etc/npmrc", ".pyenv/versions/3.12.1/envs/app/pip.conf",
    ".rbenv/credentials", ".nvm/versions/node/v22.1.0/etc/npmrc", ".nvm/.npmrc",
    ".local/share/fnm/node-versions/v22.1.0/installation/etc/npmrc", ".volta/hooks.json",
    ".volta/tools/image/node/22.1.0/etc/npmrc", ".local/share/uv/credentials/credentials.toml",
    ".local/share/uv/tools/ruff/uv-receipt.toml", ".asdf/installs/nodejs/22.1.0/etc/npmrc", ".asdf/.asdfrc",
    ".local/share/mise/installs/go/1.22.0/.netrc", ".config/mise/config.toml", ".sdkman/etc/config",
    ".sdkman/candidates/maven/3.9.0/conf/settings.xml", ".bunfig.toml", ".local/bin/own-tool", "bin/own-tool",
)  # fmt: skip
PATHS = (
    ".cargo/bin", ".pyenv/shims", ".rbenv/shims", ".nvm/versions/node/v22.1.0/bin", ".volta/bin", ".local/bin",
    ".local/share/fnm/node-versions/v22.1.0/installation/bin", ".asdf/shims",
    ".local/share/mise/installs/go/1.22.0/bin", ".sdkman/candidates/java/21-tem/bin", ".bun/bin", ".deno/bin", "bin",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for name in (*FILES, *LOGINS, ".cargo/bin/rustup"):
        path = home / name
        write_program(path, "#!/bin/sh\n")
    return home


def search_path(home: Path, *names: str) -> dict[str, str]:
    return {"PATH": os.pathsep.join([str(home / "empty"), *(str(home / name) for name in names)])}


def seen(home: Path, env: dict[str, str]) -> list[str]:
    description = describe(World(home), GuestFiles(home.parent / "workspace", env=env))
    bound = [each.path for each in description.protections if isinstance(each, Binding)]
    return [name for name in (*FILES, *LOGINS) if any((home / name).is_relative_to(path) for path in bound)]


def test_guests_see_the_toolchains_that_path_names_and_no_login(home: Path) -> None:
    """Guests see every file of a toolchain's version, but no login beside it and none of the user's programs."""
    assert seen(home, search_path(home, *PATHS)) == list(FILES)


def test_a_toolchain_that_path_does_not_name_is_not_seen(home: Path) -> None:
    """A toolchain needs its folder on PATH; rustup's come with cargo's folder, and uv's Pythons with uv."""
    assert seen(home, search_path(home)) == []
    with_cargo = seen(home, search_path(home, ".cargo/bin"))
    assert with_cargo == [name for name in FILES if name.startswith((".cargo", ".rustup"))]
    with_uv = seen(home, search_path(home, ".local/bin"))
    assert with_uv == [name for name in FILES if name.startswith((".local/share/uv", ".local/bin"))]


def test_a_toolchain_that_a_variable_has_moved_is_found_there(home: Path, tmp_path: Path) -> None:
    """Guests get the variable too; a variable that names the home or a folder above it shows nothing."""
    moved = tmp_path / "opt" / "pyenv"
    (moved / "shims").mkdir(parents=True)
    env = {"PATH": str(moved / "shims"), "PYENV_ROOT": str(moved)}
    assert list(toolchain_paths(home, env)) == [moved / "shims"]
    env = {"PATH": str(tmp_path / "data" / "mise" / "shims"), "XDG_DATA_HOME": str(tmp_path / "data")}
    (tmp_path / "data" / "mise" / "shims").mkdir(parents=True)
    assert list(toolchain_paths(home, env)) == [tmp_path / "data" / "mise" / "shims"]
    for root in (home, tmp_path, Path("/")):
        assert list(toolchain_paths(home, {"PATH": str(home / "bin"), "PYENV_ROOT": str(root)})) == []
    assert {each.variable for each in TOOLCHAINS if each.variable} <= set(FOR_EVERY_AGENT)


def test_a_link_on_path_that_leads_into_a_toolchain_names_it(home: Path, tmp_path: Path) -> None:
    """The link, which fnm makes for each shell, is made in the guest too."""
    version = home / ".local/share/fnm/node-versions/v22.1.0/installation"
    (tmp_path / "shell").mkdir()
    (tmp_path / "shell" / "1").symlink_to(version)
    env = {"PATH": str(tmp_path / "shell" / "1" / "bin")}
    assert list(find_toolchains(home, env)) == [home / ".local/share/fnm"]
    arguments = describe(World(home), GuestFiles(tmp_path / "workspace", env=env)).arguments()
    assert ("--symlink", str(version), str(tmp_path / "shell" / "1")) in zip(
        arguments, arguments[1:], arguments[2:], strict=False
    )


def settle(home: Path) -> None:
    """Set the times of a home's folders back by an hour, so that a search of them is cached."""
    for folder in (home, *(path for path in home.rglob("*") if path.is_dir() and not path.is_symlink())):
        os.utime(folder, (time.time() - 3600,) * 2)


def test_what_was_found_is_known_until_something_changes(home: Path) -> None:
    """The cached search is repeated after a new version, a new login beside it, or a new program."""
    root, uv = home / ".rbenv", home / ".local" / "share" / "uv"
    env = search_path(home, ".rbenv/shims", ".local/bin")
    shutil.rmtree(root / "versions" / "3.3.0")
    (home / ".local" / "bin" / "uv").unlink()
    settle(home)
    found = find_toolchains(home, env)
    assert found is find_toolchains(home, env)
    assert not [path for path in found[root] if "versions" in path.parts]
    assert uv not in found
    version = root / "versions" / "3.4.0"
    (version / "bin").mkdir(parents=True)
    assert root / "versions" in find_toolchains(home, env)[root]
    settle(home)
    find_toolchains(home, env)
    (version / "credentials").touch()
    assert not {version, root / "versions"} & set(find_toolchains(home, env)[root])
    write_program(home / ".local" / "bin" / "uv", "#!/bin/sh\n")
    assert uv in find_toolchains(home, env)
