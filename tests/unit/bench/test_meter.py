"""The bench's reader of the server's count of Actions."""

from bench.meter import count_actions

TOLD = """\
# TYPE action counter
action{action_type="command_ScheduleActivityTask",namespace="default",operation="A",service_name="frontend"} 7
action{action_type="grpc_QueryWorkflow",namespace="default",operation="B",service_name="frontend"} 2
action{action_type="grpc_QueryWorkflow",namespace="default",operation="C",service_name="frontend"} 1
action{action_type="grpc_StartWorkflowExecution",namespace="temporal_system",operation="D",service_name="frontend"} 2
activity_end_to_end_latency_count{namespace="default"} 9
"""


def test_actions_are_counted_by_type_in_one_namespace() -> None:
    """Other namespaces and other metrics do not count."""
    assert count_actions(TOLD) == {"ScheduleActivityTask": 7, "QueryWorkflow": 3}
