from bench.hops import road_of_a_step


async def test_a_step_takes_few_calls_between_few_modules() -> None:
    """A reader of one step follows few calls between few modules, and none of the calls leads upward."""
    road = await road_of_a_step(seed=7)
    assert 0 < len(road.hops) <= 500
    assert 0 < len(road.pairs) <= 180
    assert 0 < len(road.modules) <= 85
    assert road.upward == []
    called = [hop.callee for hop in road.hops]
    stages = ["prepared_steps", "guard", "judgement", "steps.table", "remote_checkpoints"]
    assert [stage for name in called for stage in stages if name.endswith(stage)] == stages
