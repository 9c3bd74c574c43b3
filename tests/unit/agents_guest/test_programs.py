"""The files that a program needs are found from the program itself, and no other files are bound."""

import os
from pathlib import Path

import pytest
from fakes.shell_programs import write_program

from septet.agents.guest.programs import Needs
from septet.agents.guest.sandbox_parts import Binding, Link


def needs_of(program: Path, *words: str, env: dict[str, str] | None = None) -> Needs:
    needs = Needs(os.defpath)
    needs.add_all((str(program), *words), env or {})
    return needs


def test_links_to_a_program_are_made_anew_and_its_file_is_bound(tmp_path: Path) -> None:
    """The installer of claude puts a link among the user's programs to the file of one version."""
    real = write_program(tmp_path / "share" / "claude" / "2.1", "\n")
    link = tmp_path / "bin" / "claude"
    link.parent.mkdir()
    link.symlink_to("../share/claude/2.1")
    needs = needs_of(link)
    assert needs.bindings(()) == (Binding(real),)
    assert needs.made_links(()) == (Link(link, "../share/claude/2.1"),)


def test_a_package_of_node_brings_the_modules_that_it_was_installed_with(tmp_path: Path) -> None:
    """The outermost `node_modules` is bound, and no link is made inside a bound folder."""
    modules = tmp_path / "lib" / "node_modules"
    program = write_program(modules / "cli" / "node_modules" / "inner" / "run.js", "#!/bin/sh\n")
    link = modules / ".bin" / "cli"
    link.parent.mkdir()
    link.symlink_to(program)
    needs = needs_of(link)
    assert (needs.bindings(()), needs.made_links(())) == ((Binding(modules),), ())


@pytest.mark.parametrize("place", [".local", "."])
def test_a_python_in_a_home_brings_its_packages_and_nothing_else_of_the_home(place: str, tmp_path: Path) -> None:
    """An interpreter in `~/.local/bin` or `~/bin` brings its packages, and no other file of the home."""
    home = tmp_path / "home"
    python = write_program(home / place / "bin" / "python3", "\n")
    packages = home / place / "lib" / "python3.12"
    for path in (packages / "site-packages", home / ".local/share/keyrings", home / place / "lib/node"):
        path.mkdir(parents=True)
    write_program(home / place / "bin" / "other", "\n")
    program = write_program(home / "tools" / "agent", f"#!{python}\n")
    needs = Needs(os.defpath, home)
    needs.add_all((str(program),), {})
    assert {each.path for each in needs.bindings(())} == {program, python, packages}


def test_a_script_brings_the_interpreter_that_its_first_line_names(tmp_path: Path) -> None:
    """The first line names the interpreter by `env` and the worker's PATH."""
    interpreter = write_program(tmp_path / "tools" / "interpreter", "\n")
    needs = Needs(str(interpreter.parent))
    needs.add_all((str(write_program(tmp_path / "agent", "#!/usr/bin/env -S interpreter --fast\n")),), {})
    assert {each.path for each in needs.bindings(())} == {tmp_path / "agent", interpreter}


def test_files_that_the_worker_names_are_seen(tmp_path: Path) -> None:
    """Files in a configured command line, and files in known variables, are bound."""
    script, certificates = tmp_path / "script.py", tmp_path / "ca.pem"
    for path in (script, certificates):
        path.touch()
    env = {"NODE_EXTRA_CA_CERTS": str(certificates), "SECRET": str(tmp_path)}
    needs = needs_of(Path("/bin/sh"), str(script), "--flag", "/not/there", env=env)
    assert {each.path for each in needs.bindings(())} == {script, certificates}


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    """A program that is a link in a circle ends the search."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert needs_of(tmp_path / "a").trace(tmp_path / "a") in {tmp_path / "a", tmp_path / "b"}


def test_a_python_of_its_own_in_a_home_is_brought_whole(tmp_path: Path) -> None:
    """A Python of uv or pyenv is bound as a whole, and a link to it in `~/.local/bin` is made again."""
    base = tmp_path / "home" / ".local/share/uv/python/cpython-3.12"
    python, link = write_program(base / "bin" / "python3.12", "\n"), tmp_path / "home/.local/bin/python3"
    (base / "lib" / "python3.12").mkdir(parents=True)
    link.parent.mkdir()
    link.symlink_to(python)
    needs = Needs(os.defpath, tmp_path / "home")
    needs.add_program(link)
    assert needs.bindings(()) == (Binding(base),)
    assert needs.made_links(()) == (Link(link, str(python)),)
