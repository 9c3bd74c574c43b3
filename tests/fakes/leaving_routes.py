"""Objects in a guest's commits that must not leave the host: objects that git refuses, and files that are too large."""

from dataclasses import dataclass
from typing import Final

_PREPARE: Final = r"""
import hashlib, subprocess, zlib

def store(kind, content):
    whole = kind + b' %d\0' % len(content) + content
    name = hashlib.sha1(whole).hexdigest()
    path = os.path.join('.git/objects', name[:2], name[2:])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(zlib.compress(whole))
    return name

def entry(mode, name, sha):
    return mode + b' ' + name + b'\0' + bytes.fromhex(sha)

def commit(tree):
    head = open('.git/HEAD').read().strip()
    parent = subprocess.run(['git', 'rev-parse', 'HEAD'], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    who = b'a <a@b> 1700000000 +0000'
    sha = store(b'commit', b'tree %s\nparent %s\nauthor %s\ncommitter %s\n\nwork\n' % (tree.encode(), parent.encode(), who, who))
    ref = head.removeprefix('ref: ') if head.startswith('ref: ') else 'HEAD'
    path = os.path.join('.git', ref)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').write(sha + '\n')
    print(sha)

blob = store(b'blob', b'[core]\n fsmonitor = evil\n')
folder = store(b'tree', entry(b'100644', b'config', blob))
"""


@dataclass(frozen=True)
class LeavingRoute:
    """One kind of commit of a guest; its program prints the commit's name."""

    name: str
    attack: str
    program: str
    words: str

    @property
    def protection(self) -> str:
        return "sizes are asked for before a push" if "large" in self.name else "a check as receiving gits make it"

    @property
    def script(self) -> str:
        return _PREPARE + self.program


LEAVING_ROUTES: Final = (
    LeavingRoute(
        "slash",
        "commit a file whose name has slashes and `..`",
        "commit(store(b'tree', entry(b'100644', b'a/../../b', blob)))",
        "fullPathname",
    ),
    LeavingRoute(
        "git",
        "commit a folder named `.git`",
        "commit(store(b'tree', entry(b'40000', b'.git', folder)))",
        "hasDotgit",
    ),
    LeavingRoute(
        "git-hfs",
        "… one that is `.git` on a Mac, with a character that nobody sees",
        "commit(store(b'tree', entry(b'40000', '.g\\u200cit'.encode(), folder)))",
        "hasDotgit",
    ),
    LeavingRoute(
        "git-ntfs",
        "… one that is `.git` on Windows, `GIT~1`",
        "commit(store(b'tree', entry(b'40000', b'GIT~1', folder)))",
        "hasDotgit",
    ),
    LeavingRoute(
        "dots", "commit a folder named `..`", "commit(store(b'tree', entry(b'40000', b'..', folder)))", "hasDotdot"
    ),
    LeavingRoute(
        "twice",
        "commit two files of one name",
        "commit(store(b'tree', entry(b'100644', b'a', blob) + entry(b'100644', b'a', blob)))",
        "duplicateEntries",
    ),
    LeavingRoute(
        "large",
        "commit a file that is too large",
        "commit(store(b'tree', entry(b'100644', b'a', store(b'blob', bytes(2 << 20)))))",
        "a in the commits up to [0-9a-f]{12} has 2 MiB, and 1 MiB are allowed",
    ),
    LeavingRoute(
        "large-before",
        "… and take it out in the next commit",
        "commit(store(b'tree', entry(b'100644', b'a', store(b'blob', b'x' * (2 << 20)))));"
        "commit(store(b'tree', entry(b'100644', b'b', blob)))",
        "a in the commits up to [0-9a-f]{12} has 2 MiB, and 1 MiB are allowed",
    ),
)
READER_ROUTES: Final = (
    (
        "leave a line of 12,000 spaces in `x.cpp`, or 4,000 lines in `x.java`, for the page to colour",
        "scanners of linear time",
    ),
    (
        "make an edit of a hundred lines that differ a little, for the page to show",
        "no search for the best difference",
    ),
    (
        "print a line of blanks on stderr, or half a key many times, for the worker to search",
        "expressions of linear time",
    ),
)
"""Texts and their protections, for people: `tests/escape/test_reader_routes.py` tries them."""
