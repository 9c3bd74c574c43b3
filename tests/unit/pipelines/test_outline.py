"""The outline of a solution fits into less than 1 KB."""

from fakes.solutions import solution, task
from hypothesis import given
from hypothesis import strategies as st

from septet.pipelines.solution import OUTLINE_LIMIT_BYTES, outline_of

lines = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=600).map(
    lambda text: f"a{text}"
)


@given(title=lines, summary=st.text(min_size=1, max_size=3000).map(lambda text: f"a{text}"), names=st.lists(lines))
def test_an_outline_is_bounded_by_bytes(title: str, summary: str, names: list[str]) -> None:
    """An outline keeps its limit of bytes for any characters, and its count includes the omitted files."""
    summary = summary.encode(errors="replace").decode()
    files = [f"src/{name}" for name in names] or ["src/app.py"]
    tasks = (task(f"T{number}", title=title) for number in range(100))
    outline = outline_of(solution(*tasks, summary=summary, predicted_files=files))
    assert len(outline.model_dump_json().encode()) < OUTLINE_LIMIT_BYTES
    assert len(outline.files) <= outline.files_count
    assert outline.id == "SOL-7"
