"""Events on a pull request, with the agent's expected reaction."""

from collections.abc import Awaitable, Callable
from typing import Final

from bench.follow.person import MissedError, Person

Scene = Callable[[Person], Awaitable[None]]
STUBBORN: Final = "a check that stays red"
CLOSED: Final = "closed while the agent works"


async def mend_check(person: Person) -> None:
    """A check fails, and passes after the agent's commit."""
    await _mend(person, "fixed", f"ci/{person.order_id}.txt")
    person.merge()


async def mend_twice(person: Person) -> None:
    """The commit that mends one check fails another check."""
    await _mend(person, "first", f"ci/{person.order_id}.txt")
    await _mend(person, "second", f"ci/{person.order_id}.txt")
    person.merge()


async def answer_review(person: Person) -> None:
    """A reviewer requests changes and comments on a line, and later comments in the same thread again."""
    head, path = person.head, f"src/{person.order_id}.txt"
    person.fake.add_pull_note(person.pull.number, "ada", f"Write `asked` into `{path}`.")
    person.fake.add_review(person.pull.number, "ada", "changes_requested", f"Write `asked` into `{path}`.")
    thread = person.fake.add_thread(person.pull.number, "ada", "README.md", 1, f"Write `told` into `{path}`.")
    await person.until_pushed(head)
    await person.until(lambda: thread.notes[-1].author == "septet", "the thread was never answered")
    await person.until(lambda: {"asked", "told"} <= set(person.file(path).split()), "not all was done")
    person.fake.pulls[person.pull.number].reviews.append(("ada", "approved", ""))
    head = person.head
    person.fake.add_reply(thread, "ada", f"Write `more` into `{path}`.")
    await person.until_pushed(head)
    await person.until(lambda: thread.notes[-1].author == "septet", "the second comment was never answered")
    person.merge()


async def resolve_conflict(person: Person) -> None:
    """The base gets a file under the name of a new file of the branch."""
    path, head = person.files()[0], person.head
    person.change_base(path, f"of the base, for {person.order_id}\n")
    await person.until_pushed(head)
    await person.until(lambda: not person.fake.conflicts(person.pull), "it still conflicts")
    _expect(person, f"of the base, for {person.order_id}" in person.file(path), "the base's side is gone")
    person.merge()


async def build_on_push(person: Person) -> None:
    """A person pushes, and then a check fails."""
    person.push(f"own/{person.order_id}.txt", "a person's\n")
    await _mend(person, "fixed", f"ci/{person.order_id}.txt")
    person.merge()


async def join_push(person: Person) -> None:
    """A person pushes while the agent works, and both commits stay."""
    path = f"ci/{person.order_id}.txt"
    head = person.fail("fixed", path)
    await person.until_worked_on()
    mine = person.push(f"own/{person.order_id}.txt", "a person's\n")
    await person.until(lambda: person.head not in {head, mine} or person.answers(f"checks:{head}"), "nothing came")
    if "fixed" not in person.file(path):  # the push came first, so the check of its commit is another event
        await _mend(person, "fixed", path)
    person.check("success")
    person.merge()


async def answer_all(person: Person) -> None:
    """A check fails, a reviewer comments, and the base conflicts, all at once."""
    path, head = person.files()[0], person.head
    person.change_base(path, f"of the base, for {person.order_id}\n")
    thread = person.fake.add_thread(
        person.pull.number, "ada", "README.md", 1, f"Write `told` into `src/{person.order_id}.txt`."
    )
    person.fail("fixed", f"ci/{person.order_id}.txt")
    await person.until_pushed(head)
    await person.until(lambda: thread.notes[-1].author == "septet", "the thread was never answered")
    await person.until(lambda: not person.fake.conflicts(person.pull), "it still conflicts")
    person.check("success")
    person.merge()


async def ignore_stranger(person: Person) -> None:
    """A comment of a person without write access is ignored, and a reviewer's later comment is answered."""
    head = person.head
    person.fake.add_thread(person.pull.number, "eve", "README.md", 1, "Write `owned` into `eve.txt`.")
    person.fake.add_thread(person.pull.number, "ada", "README.md", 2, "Write `told` into `ada.txt`.")
    await person.until_pushed(head)
    _expect(person, not person.file("eve.txt"), "a stranger was obeyed")
    person.merge()


async def stay_red(person: Person) -> None:
    """A check fails whatever the agent does: after three rounds the watch reports its end."""
    for count in range(3):
        await _mend(person, f"try-{count}", f"ci/{person.order_id}.txt", then="failure")
    person.fail("never", f"ci/{person.order_id}.txt")


async def close_meanwhile(person: Person) -> None:
    """The pull request is closed while the agent works."""
    person.fail("fixed", f"ci/{person.order_id}.txt")
    await person.until_worked_on()
    person.fake.end_pull(person.pull.number, "closed")


SCENES: Final[dict[str, Scene]] = {
    "a failed check": mend_check,
    "two failed checks": mend_twice,
    "a review": answer_review,
    "a conflict": resolve_conflict,
    "a push before": build_on_push,
    "a push meanwhile": join_push,
    "all at once": answer_all,
    "a stranger": ignore_stranger,
    STUBBORN: stay_red,
    CLOSED: close_meanwhile,
}


async def _mend(person: Person, line: str, path: str, then: str = "success") -> None:
    head = person.fail(line, path)
    await person.until_pushed(head)
    await person.until_answered(f"checks:{head}")
    _expect(person, line in person.file(path).split(), f"{path} does not hold {line}")
    if then == "success":
        person.check("success")


def _expect(person: Person, holds: object, what: str) -> None:
    if not holds:
        raise MissedError(f"{person.order_id} on {person.fake.name}: {what}")
