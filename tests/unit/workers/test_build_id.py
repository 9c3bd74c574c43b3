import ast
from pathlib import Path

from workers.builds.build_id import import_closure

ROOT = Path(__file__).resolve().parents[3]


def test_the_closure_is_what_a_parser_finds_in_the_sources() -> None:
    """The closure contains every module of ours that a module of the closure imports, by Python's parser."""
    closure = import_closure(ROOT)
    assert {name.partition(".")[0] for name in closure} == {"septet", "workflows"}
    for path in closure.values():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
            else:
                continue
            ours = [name for name in names if name.partition(".")[0] in {"septet", "workflows"}]
            files = {name: ROOT.joinpath(*name.split(".")) for name in ours}
            modules = {name for name, stem in files.items() if stem.is_dir() or stem.with_suffix(".py").is_file()}
            assert modules <= closure.keys(), path
