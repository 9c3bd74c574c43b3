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
from bench.chaos.report import evidence, table
from bench.chaos.side import sides
from bench.chaos.trial import Seen

DONE = Delivered("wo-000", ("refs/heads/chore-wo-000-chaos",), commits=1, pushes=1, pull_requests=1)


def life(name: str, began: float, last: float, step: str = "implement_plan", *, ended: bool = True) -> Life:
    """Return an agent with a beat in each second."""
    notes = [began + number for number in range(int(last - began) + 1)]
    return Life("wo-000", name, step, began=began, last=last, ended=ended, notes=notes)


def seen(*lives: Life, kills: tuple[Kill, ...] = (), kept: frozenset[str] = frozenset()) -> Seen:
    """Return a trial with one delivered work order."""
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


def test_a_second_agent_counts_for_the_kill_that_ended_the_first() -> None:
    """The second agent counts for the kill that ended the first, not for a worker's kill beside it."""
    lives = (life("a", 0, 5, ended=False), life("b", 6, 12))
    kills = (kill("agent", 5, "a"), kill("worker", 5.5, "a"))
    account = Account(seen(*lives, kills=kills))
    assert (account.all.agent_steps, account.all.agent_starts) == (1, 2)
    assert (account.by_kind["agent"].agent_steps, account.by_kind["agent"].agent_starts) == (1, 2)
    assert (account.by_kind["worker"].agent_steps, account.by_kind["worker"].agent_starts) == (1, 1)


def test_paid_again_is_what_the_agents_of_a_step_worked_beyond_its_units() -> None:
    """Work beyond a step's units was paid again; a single agent pays nothing again."""
    first, second = life("a", 0, 5, ended=False), life("b", 10, 16)
    first.units = {1: 2.0, 2: 2.0}
    second.units = {1: 2.0, 2: 2.0, 3: 2.0}
    account = Account(seen(first, second, kills=(kill("agent", 5, "a"),)))
    assert account.all.agent_seconds_repaid == account.by_kind["agent"].agent_seconds_repaid == 5.0
    assert Account(seen(first)).all.agent_seconds_repaid == 0


def test_recovery_of_an_agent_that_lives_on_is_its_next_sign_of_life() -> None:
    """For an agent that lives on, the recovery time lasts until its next beat."""
    account = Account(seen(life("a", 0, 9), kills=(kill("worker", 3.5, "a"),)))
    assert account.all.recovery_seconds.p95 == 0.5


@pytest.mark.parametrize("kind", ["agent", "worker"])
def test_recovery_of_an_agent_that_died_is_the_start_of_the_next_one(kind: Kind) -> None:
    """For a dead agent, the recovery time lasts until the next agent of its work order starts."""
    dead, next_one = life("a", 0, 4, ended=False), life("b", 34, 40)
    account = Account(seen(dead, next_one, kills=(kill(kind, 3.5, "a"),)))
    assert account.by_kind[kind].recovery_seconds.p50 == 30.5


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


def test_a_worker_that_ends_by_itself_breaks_a_law() -> None:
    """A worker that ends without a kill breaks a law, and its last words are in the evidence."""
    trial = replace(seen(life("a", 0, 9), kills=(kill("worker", 3, "a"),)), worker_ends=["exit code 1, why"])
    assert broken(Account(trial)) == ("a worker ended by itself",)
    assert evidence(Account(trial)) == ["a worker ended by itself: exit code 1, why"]


def test_an_agent_that_is_left_without_a_proxy_breaks_a_law() -> None:
    """If only proxies and workers die, each proxy is replaced and no agent starts twice."""
    plan = Plan(kinds=("worker", "proxy"))
    trial = replace(seen(life("a", 0, 9), kills=(kill("proxy", 3, "a"),)), plan=plan)
    assert broken(Account(trial)) == ()
    assert broken(Account(replace(trial, unreplaced=["a"]))) == ("a proxy was not replaced",)
    assert evidence(Account(replace(trial, unreplaced=["a"]))) == ["left without a proxy: a"]
    again = replace(trial, lives=[life("a", 0, 5, ended=False), life("b", 6, 9)])
    assert broken(Account(again)) == ("agent_starts",)
    assert broken(Account(replace(again, plan=Plan()))) == ()


def test_steps_that_share_sessions_have_two_processes_and_no_turn_is_taken_again_unhurt() -> None:
    """A third process breaks a law if only workers die; a turn that repeats without a kill is paid twice."""
    plan = Plan(kinds=("worker",), sessions="shared")
    turns = [
        replace(life(run + step, 0, 9, step), run=run)
        for run, step in (("a", "build_plan"), ("b", "implement_plan"))
    ]
    trial = replace(seen(*turns, kills=(kill("worker", 3, "abuild_plan"),)), plan=plan)
    assert broken(Account(trial)) == ()
    third = replace(life("c", 10, 12, "create_commit"), run="c")
    assert broken(Account(replace(trial, lives=[*turns, third]))) == ("agent_processes",)
    again = replace(trial, lives=[*turns, replace(life("c", 10, 12), run="c")], plan=Plan(sessions="shared"))
    assert broken(Account(again)) == ("paid_twice",)
    assert "paid twice: wo-000 implement_plan" in evidence(Account(again))[0]
    killed = replace(again, kills=[*trial.kills, kill("agent", 8, "bimplement_plan")])
    assert broken(Account(killed)) == ()


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


@pytest.mark.parametrize(
    ("kinds", "struck"),
    [
        (("host",), ["septet"]),
        (("supervisor", "host"), ["septet"]),
        (("host", "agent"), ["septet", "naive"]),
        (("worker-rolling",), ["septet", "naive"]),
    ],
)
def test_the_baseline_stands_only_where_it_can_be_struck(kinds: tuple[Kind, ...], struck: list[str]) -> None:
    """The baseline has neither supervisor nor second host, so it runs only if the trial can kill its parts."""
    plan = Plan(kinds=kinds)
    assert [side.name for side in sides(plan, naive=True)] == struck
    assert [side.name for side in sides(plan, naive=False)] == ["septet"]


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


def test_a_budget_that_was_never_used_up_proves_nothing() -> None:
    """A trial with budgets fails if no work order used its budget up; the table counts the raises."""
    trial = replace(seen(life("a", 0, 9), kills=(kill("worker", 3, "a"),)), plan=Plan(budget="5ktok"))
    assert broken(Account(trial)) == ("no budget was used up",)
    raised = Account(replace(trial, raises={"wo-000": 2}))
    assert broken(raised) == ()
    assert (raised.all.budgets_raised, raised.by_kind["worker"].budgets_raised) == (2, 2)
    assert broken(Account(replace(trial, plan=Plan()))) == ()
    drawn = table({"septet": raised}, "Chaos")
    (column,) = (each for each in drawn.columns if each.header == "budgets raised")
    assert [str(cell) for cell in column.cells] == ["", "2", "2"]
