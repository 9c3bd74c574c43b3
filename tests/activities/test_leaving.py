"""The reader's prompt: whole parts of the outgoing work, behind a fence that no text can close."""

from activities.outgoing.leaving_content import Leaving, LeavingParts
from septet.git.evidence.added_lines import CommitPatch

COMMIT = "c0ffee" * 6 + "beef"
FILES = b"""\
diff --git src/app.py src/app.py
--- src/app.py
+++ src/app.py
@@ -1 +1 @@
-0
+1
diff --git "src/\\303\\244.py" "src/\\303\\244.py"
--- /dev/null
+++ "src/\\303\\244.py"
@@ -0,0 +1 @@
+diff --git a line of text that looks like a header
"""


def leaving(**texts: str) -> Leaving:
    given = {f"({name})": text for name, text in texts.items()}
    return Leaving(branch="septet/bug-1", head=COMMIT, since=("0" * 40,), texts=given)


def patch(files: bytes = FILES, message: bytes = b"bug: totals\n") -> CommitPatch:
    return CommitPatch(COMMIT, b"author A <a@b.c> 1 +0000", message, files)


def test_each_file_is_a_part_with_its_own_path() -> None:
    """A line of a file that looks like git's header begins no new part."""
    parts = LeavingParts.of(leaving(title="Sum"), [patch()])
    short = COMMIT[:12]
    assert [part.path for part in parts.shown] == [
        "(title)", f"(message) of commit {short}", f"src/app.py of commit {short}",
        f'"src/\\303\\244.py" of commit {short}',
    ]  # fmt: skip
    assert (parts.left_out, parts.findings) == ((), ())


def test_a_digest_is_for_commits_branch_and_texts() -> None:
    """A change of text, branch, head or base changes the digest."""
    one = leaving(title="Sum", body="It sums.")
    others = (
        leaving(title="Sum", body="It sums. "),
        one.model_copy(update={"branch": "other"}),
        one.model_copy(update={"head": "1" * 40}),
        one.model_copy(update={"since": ("1" * 40,)}),
    )
    assert one.digest == leaving(body="It sums.", title="Sum").digest
    assert len({one.digest, *(each.digest for each in others)}) == 5
