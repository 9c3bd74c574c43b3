import subprocess
import sys

HEAVY = ("fastapi", "jinja2", "msgspec", "pydantic", "rich", "temporalio")


def test_help_imports_nothing_heavy() -> None:
    """What `septet --help` and the shell's completion need is there without the packages that take long to import."""
    looked = f"import sys, clients.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
