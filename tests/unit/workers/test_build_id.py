import ast
from pathlib import Path

from workers.builds.build_id import import_closure

ROOT = Path(__file__).resolve().parents[3]


def test_the_closure_is_what_a_parser_finds_in_the_sources() -> None:
    """The closure contains every module of ours that a module of the closure imports, by Python's parser."""
    closure = import_closure(ROOT)
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


def test_the_closure_reaches_packages_inside_packages_and_imports_inside_functions(tmp_path: Path) -> None:
    """The closure includes deep modules and imports in functions, and no module that no workflow imports."""
    modules = {
        "workflows/__init__.py": "",
        "workflows/order/__init__.py": "",
        "workflows/order/run.py": "from septet import (\n    names,  # all\n)\ndef f():\n    import septet.deep.room as r\n",
        "septet/__init__.py": "",
        "septet/names.py": "import os, temporalio",
        "septet/deep/__init__.py": "",
        "septet/deep/room.py": "from workflows.order import run",
        "septet/deep/other.py": "",
        "workers/__init__.py": "import septet.deep.other",
    }
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(import_closure(tmp_path)) == [
        "septet",
        "septet.deep",
        "septet.deep.room",
        "septet.names",
        "workflows",
        "workflows.order",
        "workflows.order.run",
    ]
