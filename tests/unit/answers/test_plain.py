"""The plain forms of the steps' answers: what is read, and what is refused because it is ambiguous."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from septet.answers.plain import (
    WORDS_BEFORE_A_CLASS,
    NotPlainError,
    PlainReader,
    read_branch,
    read_class,
    read_commit_message,
    read_plan,
    read_plan_path,
    read_pull_request,
)

CLASSES = {
    "/feature": "/feature",
    "feature": "/feature",
    "Feature": "/feature",
    "/Feature": "/feature",
    "FEATURE": "/feature",
    "`/bug`.": "/bug",
    "`/bug.`": "/bug",
    '"/bug"': "/bug",
    "'bug'": "/bug",
    "**/chore**": "/chore",
    "_Chore_": "/chore",
    "/feature.": "/feature",
    " /bug\n": "/bug",
    "/bug!": "/bug",
    "```\n/chore\n```": "/chore",
    "The issue is a feature: /feature": "/feature",
    "This is a bug.": "/bug",
    "It\N{RIGHT SINGLE QUOTATION MARK}s a chore": "/chore",
    "Class: /bug": "/bug",
    "Classification: **/feature**": "/feature",
    "It's a new feature request.": "/feature",
    "I would classify this issue as a `/chore`.": "/chore",
    "Feature \N{EN DASH} /feature": "/feature",
}
NO_CLASSES = [
    "",
    " ",
    ".",
    "request",
    "The issue",
    "not a bug but a feature",
    "This is not a /bug",
    "It isn't a bug",
    "/bug or /feature",
    "/bug\n/feature",
    "bug, feature, chore",
    "/bug?",
    "It might be a /bug",
    "maybe /feature",
    "/features",
    "bugs",
    "/hotfix",
    "debug",
    "The bug is in the parser",
    "The feature is the issue",
    "A feature is broken: /bug and /feature",
    "anything but /bug",
    "hardly a /chore",
    "{issue_class: /bug}",
    "<bug>",
    "/bug/",
    "//bug",
    "non-bug",
    "/bug: it crashes",
    "x" * 3000 + " /bug",
    "/bug " * 1000,
]
PATHS = {
    "specs/issue-7-plan.md": "specs/issue-7-plan.md",
    "`specs/plan.md`": "specs/plan.md",
    "specs/plan.md.": "specs/plan.md",
    "`specs/plan.md`.": "specs/plan.md",
    '"./specs/plan.md"': "./specs/plan.md",
    "plan.md": "plan.md",
    "PLAN.MD": "PLAN.MD",
    "/home/u/repo/specs/plan.md\n": "/home/u/repo/specs/plan.md",
    "```\nspecs/plan.md\n```": "specs/plan.md",
    "**specs/plan.md**": "specs/plan.md",
    "specs/a@2~x#1=y+z.txt": "specs/a@2~x#1=y+z.txt",
    "docs/plän.rst": "docs/plän.rst",
}
NO_PATHS = [
    "",
    "Done.",
    "plan",
    "N/A",
    "and/or",
    "e.g.",
    "none",
    "/feature",
    "The plan is at specs/plan.md",
    "Plan: specs/plan.md",
    "specs/plan.md is ready",
    "specs/a.md specs/b.md",
    "specs/a.md\nspecs/b.md",
    "[plan](specs/plan.md)",
    "specs/",
    "https://example.org/plan.md",
    "specs/my plan.md",
    '{"plan_path":"specs/plan.md"}',
    "specs/plan.md?",
    "`a.md` or `b.md`",
    "specs/plan.md..",
    "0 plans",
    "specs\\plan.md",
    "a/" * 2000 + "b.md",
    "'specs/plan.md",
    "specs/plan.m\x00d",
]
BRANCHES = {
    "feat-issue-7-wo-1-add-greeting": "feat-issue-7-wo-1-add-greeting",
    "`bug-issue-1-wo-9f-x`": "bug-issue-1-wo-9f-x",
    "chore-wo-42-tidy.": "chore-wo-42-tidy",
    "feature/greeting": "feature/greeting",
    "user/name/thing_2": "user/name/thing_2",
    '"fix/1.2-crash"': "fix/1.2-crash",
    "```text\nfeat-a-b\n```": "feat-a-b",
}
NO_BRANCHES = [
    "",
    "Done.",
    "main",
    "feature",
    "N/A",
    "and/or",
    "re-run",
    "Created branch `x` successfully.",
    "Branch: feat-a-b",
    "feat-a-b is checked out",
    "feat a b",
    "feat-a-b\nfeat-c-d",
    "-feat-a-b",
    "feat--a",
    "feat-a-",
    "feat-a..b-c",
    "feat-a-b.lock",
    "feat-a-b:c",
    "feat-a~1-b",
    "feat-a^-b",
    "feat-[a]-b",
    "feat-a@{1}-b",
    "specs/issue-7-plan.md",
    "refs//heads/x-y",
    "https://example.org/o/r/pull/1",
    '{"branch_name":"feat-a-b"}',
    "feat-ä-b",
    "f" * 3000,
]
MESSAGES = {
    "feat: add a greeting": "feat: add a greeting",
    "fix(cli)!: greet by name\n": "fix(cli)!: greet by name",
    "implementor: feature: add a greeting": "implementor: feature: add a greeting",
    "Add a greeting": "Add a greeting",
    "fix the greeting.": "fix the greeting.",
    "`chore: tidy`": "chore: tidy",
    "```\nfeat: add a greeting\n\nIt greets by name.\n```": "feat: add a greeting\n\nIt greets by name.",
    "Rename `a` to `b`\n\n- one\n- two": "Rename `a` to `b`\n\n- one\n- two",
    'Print "hello"': 'Print "hello"',
    "#42: add adds\n\n# no comment\nIt adds.": "#42: add adds\n\n# no comment\nIt adds.",
    "PROJ-42: totals of ten items": "PROJ-42: totals of ten items",
    "[PROJ-42] Fix the total": "[PROJ-42] Fix the total",
    ":bug: Fix the total": ":bug: Fix the total",
    "\N{BUG} fix: round the total": "\N{BUG} fix: round the total",
    "\N{SPARKLES} #7: rounding": "\N{SPARKLES} #7: rounding",
    "Corrige la suma de diez artículos": "Corrige la suma de diez artículos",
    "Ajoute la remise par quantité\n\nElle manquait.": "Ajoute la remise par quantité\n\nElle manquait.",
    "修复十件商品的折扣": "修复十件商品的折扣",
    "Исправить сумму заказа": "Исправить сумму заказа",
}
NO_MESSAGES = [
    "",
    "Done.",
    "Add",
    "I have committed the changes.",
    "The commit was created.",
    "Committed: feat: add a greeting",
    "Here is the message:\n\nfeat: add a greeting",
    "Commit message: feat: add x",
    "nothing to commit, working tree clean",
    "feat: add x\nand more",
    "Add the following:",
    "Fix it?",
    "feat:",
    "feat: ",
    "Note: committed",
    "abc1234 feat: add x",
    "feat: add x\n\n```\ncode\n```",
    "Add " + "x" * 200,
    "Add x\n\n" + "y" * 70_000,
    'Add x"}',
    "Let me know!",
    "Successfully added x",
    "#42 is fixed",
    "PROJ-42 is done",
    "UTF-8 is used now",
    "#: x",
    "\N{WHITE HEAVY CHECK MARK} All done",
    "已完成修改。",
    "提交信息如下\N{FULLWIDTH COLON}",
    "La modification est faite",
]
URLS = {
    "https://github.com/o/r/pull/1": "https://github.com/o/r/pull/1",
    "<https://h/o/r/pull/12>": "https://h/o/r/pull/12",
    "`http://localhost:3000/o/foo.js/pull/7`.": "http://localhost:3000/o/foo.js/pull/7",
    "file:///tmp/origin/repo.git/pull/1\n": "file:///tmp/origin/repo.git/pull/1",
    "https://h/o/r/pull/1.": "https://h/o/r/pull/1",
    "https://h/o/r/pull/1/": "https://h/o/r/pull/1/",
}
NO_URLS = [
    "",
    "Done.",
    "PR created: https://h/o/r/pull/1 - please review",
    "https://h/o/r/pull/1 https://h/o/r/pull/2",
    "pull/1",
    "https://h/o/r/issues/1",
    "https://h/o/r/pull/new/feat-a-b",
    "https://h/o/r/pull/0",
    "https://h/o/r/compare/main...x",
    "[#1](https://h/o/r/pull/1)",
    "ssh://h/o/r/pull/1",
    "https:///pull/1",
    "https://h/pull/1",
    "file://h",
    "o/r#1",
    '{"url":"https://h/o/r/pull/1"}',
    "https://h/o/r/pull/1?x",
    "https://h/" + "o/" * 2000 + "pull/1",
]


def refuses(read: PlainReader, text: str) -> bool:
    """Say whether a text is refused with a reason."""
    try:
        read(text)
    except NotPlainError as error:
        return bool(str(error))
    return False


@pytest.mark.parametrize(("text", "issue_class"), CLASSES.items())
def test_a_class_normalises(text: str, issue_class: str) -> None:
    """A class is read in any case, with or without slash and quotes, and from a sentence about it alone."""
    assert read_class(text) == {"issue_class": issue_class}


@pytest.mark.parametrize("text", NO_CLASSES)
def test_an_ambiguous_text_is_no_class(text: str) -> None:
    """A text with two classes, or with a word outside the small vocabulary, is no class."""
    assert refuses(read_class, text)


@given(st.sampled_from(["/bug", "feature", "`/chore`."]), st.from_regex(r"[a-z']{1,12}", fullmatch=True))
def test_an_unknown_word_spoils_a_class(name: str, word: str) -> None:
    """Any unknown word beside a class is refused, because the word may deny the class."""
    assume(word.strip("'") not in {"", *WORDS_BEFORE_A_CLASS, "request", "bug", "feature", "chore"})
    assert refuses(read_class, f"{word} {name}")
    assert refuses(read_class, f"It is {word} a {name}")
    assert refuses(read_class, f"{name} {word}")


@pytest.mark.parametrize(
    "word", ["not", "no", "isn't", "never", "or", "maybe", "hardly", "but", "rather", "in", "of", "fix"]
)
def test_the_vocabulary_holds_no_word_that_could_deny(word: str) -> None:
    """Words of denial, doubt and choice are not in the vocabulary, nor are words that make the class a place."""
    assert refuses(read_class, f"The issue is {word} a /bug")


@pytest.mark.parametrize(("text", "path"), PATHS.items())
def test_a_path_is_read(text: str, path: str) -> None:
    """A path alone is read without quotes, fence and full stop."""
    assert read_plan(text) == {"plan_path": path, "summary": ""}
    assert read_plan_path(text) == {"plan_path": path}


@pytest.mark.parametrize("text", NO_PATHS)
def test_a_sentence_is_no_path(text: str) -> None:
    """Prose, links, addresses, two paths and words with a slash are no path."""
    assert refuses(read_plan, text)
    assert refuses(read_plan_path, text)


@pytest.mark.parametrize("text", ["0", "0\n", "`0`", '"0"', "0.", "```\n0\n```"])
def test_zero_is_no_plan(text: str) -> None:
    """`0` means that there is no plan file, but a planner cannot answer so."""
    assert read_plan_path(text) == {"plan_path": "0"}
    assert refuses(read_plan, text)


@pytest.mark.parametrize(("text", "branch"), BRANCHES.items())
def test_a_branch_name_is_read(text: str, branch: str) -> None:
    """A branch name alone is read without quotes, fence and full stop."""
    assert read_branch(text) == {"branch_name": branch}


@pytest.mark.parametrize("text", NO_BRANCHES)
def test_prose_is_no_branch_name(text: str) -> None:
    """Prose around a name, plain words, paths and names that git refuses are no branch name."""
    assert refuses(read_branch, text)


@pytest.mark.parametrize(("text", "message"), MESSAGES.items())
def test_a_commit_message_is_read(text: str, message: str) -> None:
    """A text that begins like a commit message is read with its body."""
    assert read_commit_message(text) == {"commit_message": message}


@pytest.mark.parametrize("text", NO_MESSAGES)
def test_talk_about_a_commit_is_no_message(text: str) -> None:
    """A sentence about the commit is no commit message."""
    assert refuses(read_commit_message, text)


@pytest.mark.parametrize(("text", "url"), URLS.items())
def test_the_address_of_a_pull_request_is_read(text: str, url: str) -> None:
    """The address of a pull request alone is read, on any host and on disk."""
    assert read_pull_request(text) == {"url": url}


@pytest.mark.parametrize("text", NO_URLS)
def test_other_addresses_and_prose_are_no_pull_request(text: str) -> None:
    """Prose around an address, and an address of anything else, is no pull request."""
    assert refuses(read_pull_request, text)
