"""The arithmetic of the chaos program, from journals and kills to figures."""

from dataclasses import replace

import pytest

from bench.chaos.account import Account
from bench.chaos.evidence import Delivered
from bench.chaos.journal import Content, Life
from bench.chaos.kills import Adoption, Kill
from bench.chaos.laws import broken
from bench.chaos.ledgers import Ledger
from bench.chaos.plan import Kind, Plan
from bench.chaos.processes import Pid
from bench.chaos.report import evidence
from bench.chaos.trial import Seen

DONE = Delivered("wo-000", ("refs/heads/chore-wo-000-chaos",), commits=1, pushes=1, pull_requests=1)


def life(name: str, began: float, last: float, step: str = "implement_plan", *, ended: bool = True) -> Life:
    notes = [began + number for number in range(int(last - began) + 1)]
    return Life("wo-000", name, step, began=began, last=last, ended=ended, notes=notes)


def seen(*lives: Life, kills: tuple[Kill, ...] = (), kept: frozenset[str] = frozenset()) -> Seen:
    return Seen(Plan(), ("wo-000",), 60.0, list(lives), list(kills), [], [DONE], kept, {}, [])


def kill(kind: Kind, at: float, *hits: str) -> Kill:
    """Return a kill; the kill of an agent, supervisor or tool is aimed at the first hit."""
    return Kill(kind, at, frozenset(hits), hits[0] if kind in {"agent", "supervisor", "tool"} else "")


def test_a_content_that_is_on_no_branch_and_in_no_snapshot_is_lost() -> None:
    """A file's last content that is kept nowhere counts as lost bytes of the kill before."""
    killed = life("a", 0, 5, ended=False)
    killed.written = {"kept.txt": Content("11", 10), "gone.txt": Content("22", 7)}
    account = Account(seen(killed, life("b", 6, 9), kills=(kill("agent", 5, "a"),), kept=frozenset({"11"})))
    assert account.all.lost_bytes == 7
    assert account.by_kind["agent"].lost_bytes == 7
    assert "lost_bytes" in broken(account)
    assert any("gone.txt" in line for line in evidence(account))


@pytest.mark.parametrize("kept", ["before", "after"])
def test_a_write_that_death_interrupted_may_have_happened_or_not(kept: str) -> None:
    """If an agent died during a write, the old or the new content is enough."""
    killed = life("a", 0, 5, ended=False)
    killed.written = {"part.txt": Content("before", 10)}
    killed.pending = {"part.txt": Content("after", 20)}
    assert Account(seen(killed, kept=frozenset({kept}))).all.lost_bytes == 0
    assert Account(seen(killed)).all.lost_bytes == 10


@pytest.mark.parametrize(
    ("delivered", "law"),
    [
        (replace(DONE, commits=2), "duplicate_commits"),
        (replace(DONE, pushes=2), "duplicate_pushes"),
        (replace(DONE, pull_requests=2), "duplicate_pull_requests"),
        (replace(DONE, pull_requests=0), "not_completed"),
        (Delivered("wo-000"), "not_completed"),
    ],
)
def test_what_is_delivered_twice_or_not_at_all_breaks_a_law(delivered: Delivered, law: str) -> None:
    """Each work order needs exactly one commit, one push and one pull request."""
    trial = replace(seen(life("a", 0, 9), kills=(kill("worker", 3, "a"),)), delivered=[delivered])
    assert broken(Account(trial)) == (law,)


def test_a_second_writer_and_an_orphan_break_a_law_each() -> None:
    """A second agent in a worktree breaks a law, and so does a process that outlives the trial."""
    first, second = life("a", 0, 5, ended=False), life("b", 4, 9)
    second.second = True
    first.tools = [Pid(77, 1)]
    trial = replace(seen(first, second, kills=(kill("supervisor", 3, "a"),)), orphans={Pid(77, 1): "sleep"})
    account = Account(trial)
    assert broken(account) == ("double_writers", "orphans")
    assert (account.by_kind["supervisor"].double_writers, account.by_kind["supervisor"].orphans) == (1, 1)


def test_a_trial_without_a_kill_proves_nothing() -> None:
    """A trial fails if no kill hit a living agent."""
    assert broken(Account(seen(life("a", 0, 9)))) == ("no kill hit a living agent",)


def test_where_workers_alone_die_no_agent_starts_twice_and_each_is_adopted_soon() -> None:
    """If only workers restart, each step has one start, and each adoption is within its limit."""
    rolling = Plan(kinds=("worker-rolling",))
    trial = replace(seen(life("a", 0, 9), life("b", 10, 12), kills=(kill("worker", 3, "a"),)), plan=rolling)
    assert broken(Account(trial)) == ("agent_starts", "no adoption was seen after worker")
    late = replace(trial, adoptions=[Adoption("worker", 2.5)])
    assert broken(Account(late)) == ("agent_starts", "adoption_seconds of worker: 2.5 s")


def test_tokens_that_an_account_has_counted_too_often_or_not_at_all_break_a_law() -> None:
    """Too many tokens in one work order do not make up for too few in another."""
    trial = replace(seen(life("a", 0, 5)), orders=("wo-000", "wo-001"))
    even = replace(trial, ledgers=[Ledger("wo-000", 70, 70), Ledger("wo-001", 30, 30)])
    assert (Account(even).all.tokens_counted, Account(even).all.tokens_miscounted) == (100, 0)
    uneven = Account(replace(trial, ledgers=[Ledger("wo-000", 80, 70), Ledger("wo-001", 25, 30)]))
    assert uneven.all.tokens_miscounted == 15
    assert "tokens_miscounted" in broken(uneven)
    assert any("wo-001" in line and "miscounted" in line for line in evidence(uneven))


def test_a_budget_may_be_exceeded_by_one_turn() -> None:
    """A work order may exceed its budget by its longest turn, but not by more."""
    trial = seen(life("a", 0, 5))
    within = Account(replace(trial, ledgers=[Ledger("wo-000", 70, 70, longest_turn=30, over=30)]))
    assert within.all.over_budgets == 0
    above = Account(replace(trial, ledgers=[Ledger("wo-000", 70, 70, longest_turn=30, over=31)]))
    assert "over_budgets" in broken(above)
    assert any("above its budget" in line for line in evidence(above))
