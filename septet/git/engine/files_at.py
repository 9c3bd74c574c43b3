"""Files as of a commit."""

import re
from collections.abc import Iterable
from typing import Final

from septet.git.engine.engine import Git

_WITH_CONTENT: Final = re.compile(rb"(?:[0-9a-f]{40,64} )?(?P<kind>[a-z]+) (?P<size>[0-9]+)")
"""The line of `git cat-file --batch --follow-symlinks` before an object, or before a link without a target."""


def read_files_at(git: Git, commit: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of the files that a commit has, by path.

    Raises:
        GitError: The commit cannot be read.
    """
    one_line_paths = [path for path in paths if "\n" not in path]
    names = "".join(f"{commit}:{path}\n" for path in one_line_paths).encode()
    rest = git.run("cat-file", "--batch", "--follow-symlinks", stdin=names)
    contents: dict[str, bytes] = {}
    for path in one_line_paths:
        header, _, rest = rest.partition(b"\n")
        match = _WITH_CONTENT.fullmatch(header)
        if match is None:  # the file is missing
            continue
        size = int(match["size"])
        if match["kind"] == b"blob":
            contents[path] = rest[:size]
        rest = rest[size + 1 :]
    return contents
