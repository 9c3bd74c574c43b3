"""Read the issues of a pipeline from the forge."""

from collections.abc import Sequence

from septet.contracts.pipeline import MOST_BEFORE, PipelineIssue, ReadIssues
from septet.errors import InvalidInputError, NotFoundError
from septet.forges.forge import Forge
from septet.pipelines.issues import SHOWN_TITLE, depends_on_in
from septet.system.text import name_some


def read_issues(forge: Forge, request: ReadIssues) -> tuple[PipelineIssue, ...]:
    """Return issues of a forge with their titles and the dependencies in their texts.

    Only issues that this call reads count as dependencies.

    Raises:
        NotFoundError: Issues are missing, or no open issue has the label.
        InvalidInputError: Issues are closed, or too many issues have the label.
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused the request.
    """
    issues = forge.open_issues(request.label) if request.label else ()
    if request.label and not issues:
        message = f"label: {request.repository} has no open issue with the label {request.label}."
        raise NotFoundError(message, remedy="Give an issue the label, or name the issues by their numbers.")
    wanted = [int(issue_id) for issue_id in request.ids]
    if wanted:
        named = forge.find_issues(wanted)
        there = {issue.number for issue in named}
        if missing := [number for number in wanted if number not in there]:
            message = f"issues: {request.repository} has no {_numbers(missing)}."
            raise NotFoundError(message, remedy="Check the numbers; issues that you may not read look the same.")
        if closed := [issue.number for issue in named if issue.state == "closed"]:
            message = f"issues: {_numbers(closed)} of {request.repository} are closed."
            raise InvalidInputError(message, remedy="Leave them out.")
        issues = (*issues, *named)
    known = {str(issue.number) for issue in issues}
    read = []
    for issue in issues:
        depends_on = depends_on_in(issue.body, known, str(issue.number))[:MOST_BEFORE]
        read.append(PipelineIssue(id=str(issue.number), title=issue.title[:SHOWN_TITLE], depends_on=depends_on))
    return tuple(read)


def _numbers(numbers: Sequence[int]) -> str:
    return name_some([f"#{number}" for number in numbers], 20)
