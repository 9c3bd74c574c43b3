"""The commit of the engine."""

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.shell_programs import write_program

from septet.errors import EvidenceError, GitError
from septet.git.commits.branches import create_branch
from septet.git.commits.commit import commit_all, with_trailer
from septet.git.engine.place import Place
from septet.git.evidence.evidence import current_head
from septet.git.worktree.view import view_folder


@pytest.fixture
def branched(place: Place) -> Place:
    create_branch(place, "feat-1")
    (place.worktree / "new.py").write_text("x = 1\n")
    (place.worktree / "src" / "app.py").unlink()
    (place.worktree / "README.md").write_text("# Other\n")
    (place.worktree / "debug.log").write_text("ignored")
    return place


def test_an_attempt_after_a_dead_one_goes_on(branched: Place) -> None:
    """Locks and indexes that a killed attempt left do not stop the next attempt."""
    folder = view_folder(branched)
    for name in ("index.lock", "staging-index.lock", "staging-index"):
        (folder / name).write_bytes(b"half")
    (branched.worktree / ".git" / "refs" / "heads" / "feat-1.lock").touch()
    (branched.worktree / ".git" / "index.lock").touch()

    sha = commit_all(branched, "one")
    (folder / "HEAD").write_text(f"{branched.base_sha}\n")  # the attempt died before it wrote HEAD

    assert sha == commit_all(branched, "two")
    assert git(branched.worktree, "status", "--porcelain") == ""


def test_commits_of_the_agent_are_kept(branched: Place) -> None:
    """A commit of the agent stays as the parent of the engine's commit, with its author."""
    git(branched.worktree, "add", "new.py")
    git(branched.worktree, "commit", "-q", "-m", "by the agent")
    agents = git(branched.worktree, "rev-parse", "HEAD")

    sha = commit_all(branched, "the rest")

    assert agents == git(branched.worktree, "rev-parse", f"{sha}^")
    assert git(branched.worktree, "log", "-1", "--format=%an", agents) == "Ada"
    assert git(branched.worktree, "status", "--porcelain") == ""


def test_author_and_committer_may_differ(branched: Place) -> None:
    """`author.*` and `committer.*` of the worker's settings come before `user.*`, each value by itself."""
    (Path(branched.env["HOME"]) / ".gitconfig").write_text(
        "[user]\n\tname = Grace\n\temail = grace@example.org\n"
        "[author]\n\tname = Ada\n\temail = ada@example.org\n[committer]\n\tname = Bot\n"
    )
    git(branched.worktree, "config", "author.name", "Mallory")

    commit_all(branched, "one")

    assert (
        git(branched.worktree, "log", "-1", "--format=%an <%ae> %cn <%ce>")
        == "Ada <ada@example.org> Bot <grace@example.org>"
    )


def test_it_signs_only_where_set(branched: Place, tmp_path: Path) -> None:
    """The worker's signing program runs only for `sign=True`, and not because of `commit.gpgSign`."""
    signer, called = tmp_path / "signer", tmp_path / "called"
    write_program(
        signer,
        f"#!/bin/sh\ntouch {called}\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "echo '-----BEGIN PGP SIGNATURE-----'\necho '-----END PGP SIGNATURE-----'\n",
    )
    (Path(branched.env["HOME"]) / ".gitconfig").write_text(
        f"[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {signer}\n[user]\n\tname = G\n\temail = g@example.org\n"
    )
    commit_all(branched, "unsigned")
    assert not called.exists()

    (branched.worktree / "more.py").write_text("1")
    sha = commit_all(branched, "signed", sign=True)

    assert called.exists()
    assert "BEGIN PGP SIGNATURE" in git(branched.worktree, "cat-file", "commit", sha)


def test_the_message_is_taken_as_text(branched: Place) -> None:
    """Comment signs, options, NULs and blanks in a message are only text."""
    commit_all(branched, "\n\n# not a comment  \n\n--amend\t\nnull\0byte\r\n" + " " * 60_000 + "\n")

    assert git(branched.worktree, "log", "-1", "--format=%B") == "# not a comment\n\n--amend\nnullbyte"


def test_a_message_has_no_control_characters(branched: Place) -> None:
    """A message loses its control characters and keeps letters of all languages."""
    commit_all(branched, "\x1b[2Jfix größe 👩‍💻\u202e gnihton\r\n\n\ttold\x9b1m")

    assert git(branched.worktree, "log", "-1", "--format=%B") == "[2Jfix größe 👩‍💻 gnihton\n\n\ttold1m"


@pytest.mark.parametrize("message", ["", " \n\t\n", "\0", "\x1b\x07"])
def test_a_blank_message_is_refused(branched: Place, message: str) -> None:
    """A message without a visible character is refused."""
    with pytest.raises(EvidenceError, match="blank"):
        commit_all(branched, message)


def test_a_detached_head_is_refused(branched: Place) -> None:
    """Work on a detached HEAD is refused, since no branch would have the commit."""
    git(branched.worktree, "checkout", "-q", "--detach")

    with pytest.raises(EvidenceError, match="detached"):
        commit_all(branched, "one")


@pytest.mark.parametrize("command", ["merge", "rebase", "cherry-pick"])
def test_half_a_merge_is_refused(branched: Place, command: str) -> None:
    """Work with an unfinished merge, rebase or cherry-pick is refused, so that no conflict marker is committed."""
    commit_all(branched, "ours")
    git(branched.worktree, "checkout", "-q", "-b", "theirs", branched.base_sha)
    (branched.worktree / "README.md").write_text("# Theirs\n")
    git(branched.worktree, "commit", "-q", "-a", "-m", "theirs")
    git(branched.worktree, "checkout", "-q", "feat-1")
    git(branched.worktree, command, "theirs", check=False)

    with pytest.raises(EvidenceError, match=command):
        commit_all(branched, "one")


def test_a_branch_that_moved_meanwhile_is_not_overwritten(branched: Place) -> None:
    """The engine does not overwrite a commit that appeared on the branch meanwhile."""
    elsewhere = git(branched.worktree, "commit-tree", "-m", "elsewhere", f"{branched.base_sha}^{{tree}}")
    real = git(branched.worktree, "--exec-path")
    folder = branched.worktree.parent / "bin"
    ref = branched.worktree / ".git" / "refs" / "heads" / "feat-1"
    program = f'#!/bin/sh\ncase "$*" in *update-ref*) echo {elsewhere} > {ref};; esac\nexec {real}/git "$@"\n'
    write_program(folder / "git", program)
    racing = replace(branched, env={**branched.env, "PATH": f"{folder}:{branched.env['PATH']}"})

    with pytest.raises(GitError, match="update-ref"):
        commit_all(racing, "one")

    assert elsewhere == current_head(branched).sha


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("fix: it", "fix: it\n\nAssisted-by: claude\n"),
        ("fix: it\n\nWhy: so\n", "fix: it\n\nWhy: so\nAssisted-by: claude\n"),
        ("fix: it\n\nIt was so.", "fix: it\n\nIt was so.\n\nAssisted-by: claude\n"),
        ("fix: it\n\nAssisted-by: claude", "fix: it\n\nAssisted-by: claude"),
    ],
)
def test_a_trailer_stands_beside_those_that_there_are(message: str, expected: str) -> None:
    """A trailer joins the other trailers or gets its own paragraph, and never appears twice."""
    assert with_trailer(message, "Assisted-by: claude") == expected
    assert with_trailer(message, "") == message
