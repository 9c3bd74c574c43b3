import pytest

from septet.contracts.order import WorkOrderInput
from septet.git.engine.address import with_project


@pytest.mark.parametrize(
    ("repository", "project"),
    [
        ("https://github.com/o/foo.js", "o/foo.js"),
        ("/srv/app.git", "app"),
        ("~/app", "app"),
        ("relative/app", None),
    ],
)
def test_a_work_order_has_the_project_of_its_repository(repository: str, project: str | None) -> None:
    """A work order gets its repository's project before it starts, and none for an address that cannot be read."""
    order = WorkOrderInput(repository=repository, title="Totals are wrong", priority=5)
    assert with_project(order) == order.model_copy(update={"project": project})


def test_a_project_that_is_given_stays() -> None:
    """A given project stays."""
    order = WorkOrderInput(repository="/srv/app.git", title="Totals are wrong", project="till")
    assert with_project(order) is order
