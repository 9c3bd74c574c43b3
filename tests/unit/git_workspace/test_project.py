import pytest

from septet.contracts.order import WorkOrderInput
from septet.git.engine.project import with_project


@pytest.mark.parametrize(
    ("repository", "project"),
    [
        ("https://github.com/o/foo.js", "o/foo.js"),
        ("git@github.com:o/r.git", "o/r"),
        ("/srv/app.git", "app"),
        ("/srv/app/.git", "app"),
        ("~/app", "app"),
        ("relative/app", None),
        ("ext::sh -c true", None),
        ("/srv/-app", None),
    ],
)
def test_a_work_order_has_the_project_of_its_repository(repository: str, project: str | None) -> None:
    """It can be found on the board while it waits; an address that cannot be read is left to the worker."""
    order = WorkOrderInput(repository=repository, title="Totals are wrong", priority=5)
    assert with_project(order) == order.model_copy(update={"project": project})


def test_a_project_that_is_given_stays() -> None:
    """A person's word goes before the repository's name."""
    order = WorkOrderInput(repository="/srv/app.git", title="Totals are wrong", project="till")
    assert with_project(order) is order
