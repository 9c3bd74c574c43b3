from bench.hops import TARGET, hops_of_a_step


async def test_a_step_takes_few_calls_between_modules_and_none_goes_back_up() -> None:
    """Whoever reads one step follows few calls, each of them into a module that the caller names."""
    hops = await hops_of_a_step(seed=7)
    assert 0 < len(hops) <= TARGET
    assert [hop for hop in hops if hop.goes_up] == []
    called = [hop.callee for hop in hops]
    stages = ["prepared_steps", "guard", "settling", "proofs.classify_issue", "remote_checkpoints"]
    assert [stage for name in called for stage in stages if name.endswith(stage)] == stages
