"""What a workflow remembers of a solution: less than 1 KB, whatever the solution holds."""

from typing import Final

from septet.contracts.solution import Outline, SolutionAnswer
from septet.pipelines.solution import normal_path
from septet.system.text import cut_line

OUTLINE_LIMIT_BYTES: Final = 1024
_SUMMARY_BYTES: Final = 160
_TITLE_BYTES: Final = 48
_WITH_TASKS_BYTES: Final = 560
"""Up to here tasks are named; the rest is for the files, which say who may work beside whom."""


def outline_of(solution: SolutionAnswer) -> Outline:
    """Return the outline: as many tasks and predicted files as fit into `OUTLINE_LIMIT_BYTES` of JSON."""
    files = tuple(dict.fromkeys(normal_path(path) for path in solution.predicted_files))
    outline = Outline(id=solution.id, summary=cut_line(solution.summary, _SUMMARY_BYTES), files_count=len(files))
    for task in solution.tasks:
        longer = outline.model_copy(
            update={"tasks": (*outline.tasks, (task.id, cut_line(task.title, _TITLE_BYTES)))}
        )
        if _size(longer) > _WITH_TASKS_BYTES:
            break
        outline = longer
    for path in files:
        longer = outline.model_copy(update={"files": (*outline.files, path)})
        if _size(longer) < OUTLINE_LIMIT_BYTES:
            outline = longer
    return outline


def _size(outline: Outline) -> int:
    return len(outline.model_dump_json().encode())
