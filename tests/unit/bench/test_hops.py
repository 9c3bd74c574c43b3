from bench.hops import road_of_a_step


async def test_a_step_takes_few_calls_between_few_modules() -> None:
    """Whoever reads one step follows few calls between few modules."""
    road = await road_of_a_step(seed=7)
    assert 0 < len(road.hops) <= 630
    assert 0 < len(road.pairs) <= 262
    assert 0 < len(road.modules) <= 118
    assert len(road.upward) <= 3
    called = [hop.callee for hop in road.hops]
    stages = ["prepared_steps", "guard", "settling", "proofs.classify_issue", "remote_checkpoints"]
    assert [stage for name in called for stage in stages if name.endswith(stage)] == stages
