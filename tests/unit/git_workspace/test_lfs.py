"""Files of Git LFS in a repository whose LFS filter never runs."""

from septet.git.engine.place import Place
from septet.git.evidence.pushable_objects import whole_lfs_files

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def test_files_that_should_be_pointers_are_named(place: Place) -> None:
    """A file is named if its attributes belong to LFS and the file exists and is no pointer."""
    files = {
        ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\nkept.bin -filter\n",
        "assets/.gitattributes": "*.png filter=lfs\n",
        "pointer.bin": POINTER,
        "new one.bin": "much",
        "kept.bin": "much",
        "assets/a.png": "much",
        "b.png": "much",
    }
    (place.worktree / "assets").mkdir()
    for name, text in files.items():
        (place.worktree / name).write_text(text)

    told = whole_lfs_files(place, [*files, "gone.bin"])

    assert told.startswith("new one.bin, assets/a.png: committed whole, though .gitattributes gives it to Git LFS")
    assert "`git lfs migrate import --no-rewrite 'new one.bin' assets/a.png`" in told
    assert whole_lfs_files(place, ["pointer.bin", "b.png", "README.md"]) == ""
