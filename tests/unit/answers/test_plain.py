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
    "`/bug.`": "/bug",
    "**/chore**": "/chore",
    "```\n/chore\n```": "/chore",
    "The issue is a feature: /feature": "/feature",
    "It\N{RIGHT SINGLE QUOTATION MARK}s a chore": "/chore",
    "I would classify this issue as a `/chore`.": "/chore",
    "Feature \N{EN DASH} /feature": "/feature",
}
NO_CLASSES = [
    "",
    "/bug\n/feature",
    "/hotfix",
    "/bug: it crashes",
    "/bug " * 1000,
]
PATHS = {
    "specs/issue-7-plan.md": "specs/issue-7-plan.md",
    "`specs/plan.md`.": "specs/plan.md",
    "/home/u/repo/specs/plan.md\n": "/home/u/repo/specs/plan.md",
    "```\nspecs/plan.md\n```": "specs/plan.md",
    "specs/a@2~x#1=y+z.txt": "specs/a@2~x#1=y+z.txt",
    "docs/plän.rst": "docs/plän.rst",
    "`0`": "0",
}
NO_PATHS = [
    "Done.",
    "The plan is at specs/plan.md",
    "[plan](specs/plan.md)",
    "specs/my plan.md",
    "a/" * 2000 + "b.md",
    "'specs/plan.md",
    "specs/plan.m\x00d",
]
BRANCHES = {
    "feat-issue-7-wo-1-add-greeting": "feat-issue-7-wo-1-add-greeting",
    "chore-wo-42-tidy.": "chore-wo-42-tidy",
    "feature/greeting": "feature/greeting",
    '"fix/1.2-crash"': "fix/1.2-crash",
    "```text\nfeat-a-b\n```": "feat-a-b",
}
NO_BRANCHES = [
    "main",
    "and/or",
    "feat-a-b is checked out",
    "-feat-a-b",
    "feat-a-b.lock",
    "specs/issue-7-plan.md",
    "feat-ä-b",
    "f" * 3000,
]
MESSAGES = {
    "feat: add a greeting": "feat: add a greeting",
    "implementor: feature: add a greeting": "implementor: feature: add a greeting",
    "`chore: tidy`": "chore: tidy",
    "```\nfeat: add a greeting\n\nIt greets by name.\n```": "feat: add a greeting\n\nIt greets by name.",
    "Rename `a` to `b`\n\n- one\n- two": "Rename `a` to `b`\n\n- one\n- two",
    "#42: add adds\n\n# no comment\nIt adds.": "#42: add adds\n\n# no comment\nIt adds.",
    ":bug: Fix the total": ":bug: Fix the total",
    "\N{BUG} fix: round the total": "\N{BUG} fix: round the total",
    "Corrige la suma de diez artículos": "Corrige la suma de diez artículos",
    "修复十件商品的折扣": "修复十件商品的折扣",
}
NO_MESSAGES = [
    "Done.",
    "Here is the message:\n\nfeat: add a greeting",
    "feat: add x\nand more",
    "abc1234 feat: add x",
    "feat: add x\n\n```\ncode\n```",
    "Add " + "x" * 200,
    "Add x\n\n" + "y" * 70_000,
    'Add x"}',
    "#42 is fixed",
    "UTF-8 is used now",
    "\N{WHITE HEAVY CHECK MARK} All done",
    "已完成修改。",
    "提交信息如下\N{FULLWIDTH COLON}",
]
URLS = {
    "https://github.com/o/r/pull/1": "https://github.com/o/r/pull/1",
    "<https://h/o/r/pull/12>": "https://h/o/r/pull/12",
    "`http://localhost:3000/o/foo.js/pull/7`.": "http://localhost:3000/o/foo.js/pull/7",
    "file:///tmp/origin/repo.git/pull/1\n": "file:///tmp/origin/repo.git/pull/1",
    "https://h/o/r/pull/1/": "https://h/o/r/pull/1/",
}
NO_URLS = [
    "PR created: https://h/o/r/pull/1 - please review",
    "https://h/o/r/pull/1 https://h/o/r/pull/2",
    "https://h/o/r/compare/main...x",
    "[#1](https://h/o/r/pull/1)",
    "https://h/o/r/pull/1?x",
    "https://h/" + "o/" * 2000 + "pull/1",
]


READ = {
    read_class: ("issue_class", CLASSES),
    read_plan_path: ("plan_path", PATHS),
    read_branch: ("branch_name", BRANCHES),
    read_commit_message: ("commit_message", MESSAGES),
    read_pull_request: ("url", URLS),
}
REFUSED = {
    read_class: NO_CLASSES,
    read_plan: NO_PATHS,
    read_branch: NO_BRANCHES,
    read_commit_message: NO_MESSAGES,
    read_pull_request: NO_URLS,
}


def refuses(read: PlainReader, text: str) -> bool:
    try:
        read(text)
    except NotPlainError as error:
        return bool(str(error))
    return False


@pytest.mark.parametrize(
    ("read", "text", "answer"),
    [(read, text, {key: value}) for read, (key, texts) in READ.items() for text, value in texts.items()],
)
def test_a_plain_answer_is_read(read: PlainReader, text: str, answer: dict[str, str]) -> None:
    """An answer alone is read without quotes, fence and full stop, and a class also from a sentence about it."""
    assert read(text) == answer


@pytest.mark.parametrize(("read", "text"), [(read, text) for read, texts in REFUSED.items() for text in texts])
def test_an_ambiguous_text_is_no_plain_answer(read: PlainReader, text: str) -> None:
    """Prose around an answer, two answers and anything else that a person could read otherwise are refused."""
    assert refuses(read, text)


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


def test_a_planner_names_its_plan_by_the_path_alone() -> None:
    """A planner's path is read with an empty summary, and `0`, which means no plan file, is no planner's answer."""
    assert read_plan("`specs/plan.md`") == {"plan_path": "specs/plan.md", "summary": ""}
    assert refuses(read_plan, "0")
