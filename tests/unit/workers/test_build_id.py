import ast
import sys
from pathlib import Path

from septet.settings import Settings
from workers.builds import build_id as installation
from workers.builds.build_id import build_id, import_closure

ROOT = Path(__file__).resolve().parents[3]


def test_the_closure_holds_every_module_of_ours_that_importing_the_workflows_loads() -> None:
    """The closure contains every module of ours that an import of the workflows loads, so that all count."""
    import workflows.pipeline
    import workflows.work_order  # noqa: F401

    closure = import_closure(ROOT)
    for name in (
        "workflows.work_order",
        "workflows.wire.policies",
        "septet.contracts.order",
        "septet.errors",
        "workflows",
    ):
        assert name in closure
        assert Path(sys.modules[name].__file__ or "") == closure[name]


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


def test_the_build_of_this_installation_covers_its_workflows() -> None:
    """The folder of the build's code is the folder of all packages."""
    assert installation.ROOT == ROOT
    assert "workflows.work_order.workflow" in import_closure(installation.ROOT)


def test_a_build_may_be_named(tmp_path: Path) -> None:
    """`SEPTET_BUILD_ID` names the build; otherwise the build's id is the same on each call."""
    settings = Settings(state_dir=tmp_path)
    assert build_id(settings) == build_id(settings)
    assert build_id(settings.model_copy(update={"build_id": "mine"})) == "mine"
