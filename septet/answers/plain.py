"""Read the plain form of a step's answer: a class, a path, a branch name, a commit message, or an address.

The whole text must be the plain form. Only a fence, quotes, backquotes, emphasis and one full stop around the form
are removed. Prose around the form is not removed, because prose can reverse the meaning.

`bare_values` and `bare_branches` find a value that an agent put into a Markdown link, quotes or backquotes.
"""

import re
from collections.abc import Callable
from typing import Final

from pydantic import JsonValue

from septet.contracts.names import IssueClass

PlainReader = Callable[[str], JsonValue]
"""A function that turns a plain form into the value that the contract checks, or raises `NotPlainError`."""

MAX_MESSAGE_CHARACTERS: Final = 65_536
MAX_LINE_CHARACTERS: Final = 2048
MAX_SUBJECT_CHARACTERS: Final = 120

_WRAPPINGS: Final = (("**", "**"), ("`", "`"), ('"', '"'), ("'", "'"), ("*", "*"), ("<", ">"))
_LONE_FENCE: Final = re.compile(r"(?P<fence>`{3,}|~{3,})[\w.+-]*\n(?P<inside>[^`~]*)\n(?P=fence)")

_CLASSES: Final = {kind.value.removeprefix("/"): kind.value for kind in IssueClass}
# Any sentence of these words that ends with one class means that the issue is of that class.
_SAYING_SO: Final = """
    a an and answer as be best category class classification classified classify clearly command correct describes
    description final here i i'd i'll i've is issue issue's it it's its kind label my new result say should so that
    the therefore this thus type under we would
"""
WORDS_BEFORE_A_CLASS: Final = frozenset(_SAYING_SO.split())
_AROUND_A_WORD: Final = ".,:;!\"'`*_()-\N{EN DASH}\N{EM DASH}"

_PATH: Final = re.compile(r"[\w./@+~=#-]*[\w-]\.[A-Za-z0-9]{1,8}")
_DOCUMENT: Final = re.compile(r"\.(?:md|mdx|markdown|txt|rst|adoc|org)\Z", re.IGNORECASE)
# Narrower than `git check-ref-format`: a type and a name, or three parts and more; never a word or a word-word.
_BRANCH: Final = re.compile(
    r"(?:bug|bugfix|feat|feature|fix|hotfix|chore|docs|refactor|test)[-/]\w+(?:[-./]\w+)*|[A-Za-z]\w*(?:[-./]\w+){2,}",
    re.ASCII,
)
_PULL_REQUEST: Final = re.compile(
    r"(?:https?://[^\s/\"'`<>()\[\]]+|file://)/[^\s\"'`<>()\[\]]+/(?:pull|pulls|merge_requests)/[1-9][0-9]*/?"
)

_EMOJI: Final = re.compile(r"(?::[a-z0-9_+-]+:|[\u2190-\u2bff\U0001f000-\U0001faff]\ufe0f?) +")
_ISSUE: Final = re.compile(r"(?:#[1-9]\d*|\[?[A-Z][A-Z0-9]{1,9}-[1-9]\d*\]?)(?P<colon>:)?(?: +-)? *(?=\S)")
_TYPED_SUBJECT: Final = re.compile(
    r"(?:(?:classifier|planner|implementor|committer|pr_creator): )?"
    r"(?:bug|build|chore|ci|docs|feat|feature|fix|perf|refactor|revert|style|test)(?:\([\w./ -]+\))?!?: \S.*"
)
_FIRST_WORDS: Final = """
    add adjust allow apply avoid bump change check clarify clean correct create declare define delete
    deprecate disable document drop enable ensure escape explain export expose extend extract fix format
    generate handle hide ignore implement import improve include increase initialize inline install introduce
    join keep limit load log make mark merge migrate move normalize optimize parse pass pin prefer prepare
    prevent print raise read reduce refactor refine reject release remove rename reorder replace require reset
    resolve restore restructure return reuse revert rewrite run scope separate set show simplify skip sort
    speed split start stop store strip support switch throw tidy tighten treat trim turn unify update upgrade
    use validate verify warn wrap write
"""
# The first words of subjects in French, German, Italian, Portuguese and Spanish.
_FIRST_WORDS_ELSEWHERE: Final = """
    actualiza actualizar adapte adiciona adicionar aggiorna aggiunge aggiungi agrega agregar ajoute ajouter
    ajusta ajustar aktualisiere améliore améliorer arregla arreglar atualiza atualizar añade añadir behebe
    cambia cambiar change changer corregge correggi corrige corriger corrigir elimina eliminar entferne
    ergänze ersetze evita evitar füge implementa implementar implémente korrigiere mejora mejorar melhora
    mettre migliora modifica modificar modifie modifier permet permite prüfe quita quitar refactoriza remove
    remover remplace remplacer renombra renomeia renomme rimuove rimuovi simplifica simplifie supprime
    supprimer utilise verbessere vereinfache verhindere verschiebe verwende ändere
"""
_IMPERATIVES: Final = frozenset((_FIRST_WORDS + _FIRST_WORDS_ELSEWHERE).split())
# Scripts without the words above. A text in one of them is a subject unless it ends as a sentence does.
_OTHER_SCRIPT: Final = re.compile(r"[\u0370-\u1fff\u3040-\ud7af\uf900-\ufaff]")
_SENTENCE_ENDS: Final = tuple(".!?:\u2026\u3002\uff01\uff1a\uff1f")


class NotPlainError(ValueError):
    """The text is not the step's plain form."""


def read_class(text: str) -> JsonValue:
    """Return the answer with the issue's class, from `/feature`, `Feature`, or a sentence with one clear class."""
    if len(text) > MAX_LINE_CHARACTERS:
        raise NotPlainError("it is too long")
    parts = text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split()
    words = [word for word in (word.strip(_AROUND_A_WORD) for word in parts) if word]
    matches = [_CLASSES.get(word.removeprefix("/")) for word in words]
    classes = sorted({name for name in matches if name})
    if len(classes) > 1:
        raise NotPlainError(f"it names more than one class: {', '.join(classes)}")
    while words and words[-1] == "request":
        words.pop()
    is_clear = all(name or word in WORDS_BEFORE_A_CLASS for word, name in zip(words, matches, strict=False))
    if not words or not matches[len(words) - 1] or not is_clear:
        raise NotPlainError("it is not one of /bug, /feature and /chore, alone")
    return {"issue_class": classes[0]}


def read_plan(text: str) -> JsonValue:
    """Return the answer with the path of a plan; its summary is empty."""
    return {"plan_path": _path(_bare_line(text)), "summary": ""}


def read_plan_path(text: str) -> JsonValue:
    """Return the answer with the path of a plan, or with `0`, which means that there is no plan."""
    line = _bare_line(text)
    return {"plan_path": "0" if line == "0" else _path(line)}


def read_branch(text: str) -> JsonValue:
    """Return the answer with a branch name of at least two parts, such as `feat-issue-7-add-greeting`."""
    line = _bare_line(text)
    if not _BRANCH.fullmatch(line) or _DOCUMENT.search(line) or line.endswith(".lock"):
        raise NotPlainError("it is not a branch name, alone")
    return {"branch_name": line}


def read_commit_message(text: str) -> JsonValue:
    """Return the answer with a commit message whose subject has a usual beginning.

    A subject begins with a type, as in `feat: …`, with an issue, as in `#42: …`, or with an imperative; an emoji
    may come first.
    """
    if len(text) > MAX_MESSAGE_CHARACTERS:
        raise NotPlainError("it is too long")
    message = unwrap(text)
    subject, _, rest = message.partition("\n")
    if not _begins_as_subject(subject) or subject.endswith((":", "?", "!", "}")):
        raise NotPlainError("it does not begin as a commit message does")
    if len(subject) > MAX_SUBJECT_CHARACTERS or "```" in message or (rest and not rest.startswith("\n")):
        raise NotPlainError("it is not a subject line with a body after a blank line")
    return {"commit_message": message}


def _begins_as_subject(subject: str) -> bool:
    emoji = _EMOJI.match(subject)
    words = subject[emoji.end() :] if emoji else subject
    if issue := _ISSUE.match(words):
        if issue["colon"]:
            return True
        words = words[issue.end() :]
    imperative = words.partition(" ")[0].lower() in _IMPERATIVES and " " in words
    elsewhere = _OTHER_SCRIPT.match(words) and not words.endswith(_SENTENCE_ENDS)
    return bool(imperative or elsewhere or _TYPED_SUBJECT.fullmatch(words))


def read_pull_request(text: str) -> JsonValue:
    """Return the answer with the address of a pull request."""
    line = _bare_line(text)
    if not _PULL_REQUEST.fullmatch(line):
        raise NotPlainError("it is not the address of a pull request, alone")
    return {"url": line}


def _path(line: str) -> str:
    if not _PATH.fullmatch(line) or "//" in line or not ("/" in line or _DOCUMENT.search(line)):
        raise NotPlainError("it is not a path, alone")
    return line


def _bare_line(text: str) -> str:
    """Return a text without quotes, fences and emphasis around it, and without a full stop at its end."""
    if len(text) > MAX_LINE_CHARACTERS:
        raise NotPlainError("it is too long")
    return unwrap(unwrap(text).removesuffix("."))


def unwrap(text: str) -> str:
    """Return a text without a fence, quotes, backquotes and emphasis around it."""
    text = text.strip()
    if fenced := _LONE_FENCE.fullmatch(text):
        text = fenced["inside"].strip()
    for _ in range(3):
        for left, right in _WRAPPINGS:
            inside = text[len(left) : -len(right)]
            if text == f"{left}{inside}{right}" and left not in inside and right not in inside:
                text = inside.strip()
    return text


_LINK: Final = re.compile(r"\[(?P<text>[^\[\]\n]+)\]\(<?(?P<target>[^()<>\s]+)>?(?:\s+\"[^\"\n]*\")?\)")
_REF: Final = re.compile(r"(?:refs/heads/|refs/remotes/[^/]+/|remotes/[^/]+/|heads/|origin/)")


def bare_values(dressed: str) -> tuple[str, ...]:
    """Return a text without its quotes or emphasis, or a link's label and address; empty for a bare text."""
    value = unwrap(dressed)
    link = _LINK.fullmatch(value)
    parts = (unwrap(link["text"]), unwrap(link["target"])) if link else (value,)
    return tuple(part for part in dict.fromkeys(parts) if part != dressed)


def bare_branches(dressed: str) -> tuple[str, ...]:
    """Return the branch names that a quoted name, a link or a full ref may mean; empty for a bare name."""
    parts = bare_values(dressed) or (dressed,)
    names = dict.fromkeys(_REF.sub("", part, count=1) if _REF.match(part) else part for part in parts)
    return tuple(name for name in names if name != dressed)
