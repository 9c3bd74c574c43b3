"""All lines that a work order adds are read, whatever its attributes, messages and sizes are."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.repositories import git

from septet.contracts.facts import FileChange
from septet.errors import EvidenceError
from septet.git.engine.place import Place
from septet.git.evidence.added_lines import added_lines, committed_patches, refuse_controls
from septet.git.evidence.evidence import look, stage
from septet.git.evidence.worker_keys import KeysFoundError, refuse_keys_in_commits, refuse_keys_in_files
from septet.git.worktree.view import view_folder
from septet.keys.scanner import HEAD, MESSAGE
from septet.system.masking import hide, reveal

KEY = "a-key-of-the-worker"


@pytest.fixture
def hidden() -> Iterator[None]:
    hide([KEY])
    yield
    reveal([KEY])


def commit(place: Place, files: dict[str, bytes], message: str = "work") -> str:
    for name, content in files.items():
        (place.worktree / name).write_bytes(content)
    git(place.worktree, "add", "-A")
    git(place.worktree, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-", stdin=message.encode())
    return git(place.worktree, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("attribute", "view"),
    [("-diff", ""), ("binary", ""), ("diff=driver", ""), ("macro", ""), ("macro", "* -filter\n")],
)
def test_no_attribute_hides_a_text(place: Place, attribute: str, view: str) -> None:
    """Attributes that declare a text binary hide none of its lines, even in a view of an earlier release."""
    if view:
        (view_folder(place) / "info" / "attributes").write_text(view)
    Path(place.env["HOME"], ".gitconfig").write_text('[diff "driver"]\n\tbinary = true\n')
    attributes = f"[attr]macro binary diff=driver\n* {attribute}\n".encode()
    head = commit(place, {".gitattributes": attributes, "one.txt": b"one\n"})
    (place.worktree / "two.txt").write_bytes(b"two\n")
    staged = stage(place, look(place))
    lines = added_lines(committed_patches(place, place.base_sha, head), staged, head)
    assert {(line.path, line.content) for line in lines} >= {("one.txt", b"one"), ("two.txt", b"two")}


def test_a_binary_file_has_no_lines(place: Place) -> None:
    """A file with binary content has only its name as an added line."""
    head = commit(place, {"picture.bin": bytes(range(256)) * 100})
    lines = added_lines(committed_patches(place, place.base_sha, head))
    read = [(line.path, line.content) for line in lines if line.path != HEAD]
    assert read == [(MESSAGE, b"work"), ("picture.bin", b"picture.bin")]


def test_a_message_is_read_to_its_end(place: Place) -> None:
    """A message is read to its end, even if a line of the message looks like the beginning of a patch."""
    message = "work\n\ndiff --git a b\n+++ b\n@@ -0,0 +1 @@\n+last\n"
    head = commit(place, {"one.txt": b"one\n"}, message)
    found = [
        (line.path, line.number, line.content)
        for line in added_lines(committed_patches(place, place.base_sha, head))
    ]
    assert (found[-3], found[-1]) == ((MESSAGE, 6, b"+last"), ("one.txt", 1, b"one"))


@pytest.mark.parametrize("character", ["\x1b", "\r", "\x85", "\u202e"])
def test_controls_in_a_message_are_refused(place: Place, character: str) -> None:
    """A control character in an agent's message causes an error with the line; a CRLF is no control character."""
    head = commit(place, {}, f"work\r\n\r\nfirst{character}last\n")
    with pytest.raises(EvidenceError, match=f"{head[:12]} .* line 3"):
        refuse_controls(added_lines(committed_patches(place, place.base_sha, head)))


def test_a_plain_message_passes(place: Place) -> None:
    """Tabs, CRLF and letters of all languages are fine in a message, and the text of a file is no message."""
    head = commit(place, {"one.txt": b"\x1b[31m\n"}, "wörk 👩‍💻\r\n\r\n\t- עברית\n")
    refuse_controls(added_lines(committed_patches(place, place.base_sha, head)))


def test_more_than_is_read_is_an_error(place: Place) -> None:
    """More than 64 MiB of added lines cause an error, and the work is neither committed nor pushed."""
    (place.worktree / "large.txt").write_bytes((b"x" * 1024 * 1024 + b"\n") * 65)
    with pytest.raises(EvidenceError, match=r"more than 64 MiB .* \.gitignore"):
        added_lines((), stage(place, look(place)), place.base_sha)
    with pytest.raises(EvidenceError, match="more than 64 MiB"):
        committed_patches(place, place.base_sha, commit(place, {}))


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", f"work\n\n- by {KEY}\n"), (b"x" * 9000 + b"\n\0" + KEY.encode() + b"\n", "work")],
    ids=["in a list", "behind a NUL"],
)
@pytest.mark.usefixtures("hidden")
def test_a_key_is_found_wherever_it_stands(place: Place, content: bytes, message: str) -> None:
    """A key is found in a list of a message, and behind a NUL in a file."""
    head = commit(place, {"one.txt": content}, message)
    with pytest.raises(KeysFoundError, match=head[:12]):
        refuse_keys_in_commits(committed_patches(place, place.base_sha, head))


@pytest.mark.usefixtures("hidden")
def test_a_file_is_searched_to_its_end(place: Place) -> None:
    """A key is found with its line behind the first part of a large file and across two parts."""
    part = 16 * 1024 * 1024
    (place.worktree / "far.bin").write_bytes(b"\0" * part + b"\n" + KEY.encode() + b"\n")
    (place.worktree / "between.bin").write_bytes(b"\n" * (part - 5) + KEY.encode())
    changes = [FileChange(path=name, operation="create") for name in ("far.bin", "between.bin")]
    with pytest.raises(KeysFoundError, match=f"far.bin line 2, between.bin line {part - 4}:"):
        refuse_keys_in_files(place, changes)


NOBODY = {"name": "Agent", "email": "agent@example.org"}


def crafted(place: Place, author: dict[str, str], committer: dict[str, str], *headers: str) -> str:
    """Write a commit with the given people and headers on the base, as an agent can, and return its id."""
    people = zip(("author", "committer"), (author, committer), strict=True)
    lines = [f"{role} {who['name']} <{who['email']}> 1700000000 +0000" for role, who in people]
    tree = git(place.worktree, "rev-parse", f"{place.base_sha}^{{tree}}")
    content = "\n".join([f"tree {tree}", f"parent {place.base_sha}", *lines, *headers, "", f"work {headers}\n"])
    sha = git(place.worktree, "hash-object", "-t", "commit", "-w", "--stdin", stdin=content.encode())
    git(place.worktree, "reset", "-q", "--hard", sha)
    return sha


@pytest.mark.parametrize(
    ("author", "committer", "headers"),
    [
        (NOBODY | {"name": KEY}, NOBODY, ()),
        (NOBODY | {"email": f"{KEY}@example.org"}, NOBODY, ()),
        (NOBODY, NOBODY | {"name": KEY}, ()),
        (NOBODY, NOBODY | {"email": KEY}, ()),
        (NOBODY, NOBODY, (f"note {KEY}",)),
        (NOBODY, NOBODY, ("encoding UTF-16LE", f"gpgsig {KEY}")),
    ],
    ids=["author", "author's address", "committer", "committer's address", "header", "in another encoding"],
)
@pytest.mark.usefixtures("hidden")
def test_a_key_is_found_in_all_that_a_commit_says(
    place: Place, author: dict[str, str], committer: dict[str, str], headers: tuple[str, ...]
) -> None:
    """A key is found in names, addresses and other headers of a commit, since a push sends all of them."""
    head = crafted(place, author, committer, *headers)
    with pytest.raises(KeysFoundError, match=head[:12]):
        refuse_keys_in_commits(committed_patches(place, place.base_sha, head))
    lines = added_lines(committed_patches(place, place.base_sha, head))
    assert any(KEY.encode() in line.content and line.path == HEAD for line in lines)


def test_controls_in_a_name_are_refused(place: Place) -> None:
    """A control character in an author's name causes an error."""
    head = crafted(place, NOBODY | {"name": "Agent\x1b[2J"}, NOBODY)
    with pytest.raises(EvidenceError, match=f"{head[:12]} .* control characters"):
        refuse_controls(added_lines(committed_patches(place, place.base_sha, head)))
