"""The records of a release: licences, advisories, bills of materials, build statement and notes."""

import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.shell_programs import write_program

ROOT = Path(__file__).parents[3]
LIST_PACKAGES = runpy.run_path(str(ROOT / "docker/list_packages.py"))
LICENCES = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|Unlicense|LGPL|Lesser", re.IGNORECASE
)
"""The licences that code under the Apache licence may depend on."""


def packages() -> list[str]:
    return re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)


def licences_of(name: str) -> str:
    about = metadata.metadata(name)
    named = " ".join(each for field in ("License-Expression", "License") for each in about.get_all(field) or ())
    classifiers = [each for each in about.get_all("Classifier") or () if each.startswith("License")]
    return " ".join([named[:200], *classifiers])


def run_script(name: str, argument: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "scripts" / name), str(argument)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", packages())
def test_each_package_has_a_licence_that_allows_its_use(name: str) -> None:
    """Each package of the application has a licence that requires at most its notice and its own source code."""
    try:
        assert LICENCES.search(licences_of(name))
        assert LICENCES.search(LIST_PACKAGES["licence_of"](metadata.metadata(name))), (
            "the bill of an image lacks it"
        )
    except metadata.PackageNotFoundError:
        marker = re.search(rf"^{re.escape(name)}==\S+ ;", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
        assert marker, f"{name} is not installed, and is not for another platform alone"


def test_a_statement_names_each_product_by_its_hash_and_the_commit(tmp_path: Path) -> None:
    """The statement names each product with its hash, the commit and the lock files."""
    wheel = tmp_path / "septet-1.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    assert run_script("write_statement.py", tmp_path).returncode == 0
    statement = json.loads((tmp_path / "septet.intoto.json").read_text())
    assert statement["subject"] == [
        {"name": wheel.name, "digest": {"sha256": hashlib.sha256(b"a wheel").hexdigest()}}
    ]
    commit, *locks = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert re.fullmatch(r"[0-9a-f]{40}", commit["digest"]["gitCommit"])
    assert {each["name"] for each in locks} == {file.name for file in ROOT.glob("requirements*.lock")}


def test_a_statement_tells_whether_the_checkout_was_as_its_commit(tmp_path: Path) -> None:
    """The statement reports a changed checkout; an untracked file counts, since a wheel contains it."""
    checkout, dist = tmp_path / "checkout", tmp_path / "dist"
    for folder in (checkout / "scripts", checkout / "septet", dist):
        folder.mkdir(parents=True)
    (dist / "septet-1.0-py3-none-any.whl").write_bytes(b"a wheel")
    shutil.copy(ROOT / "scripts/write_statement.py", checkout / "scripts")
    git(checkout, "init", "--quiet")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "All")

    def is_changed() -> object:
        subprocess.run([sys.executable, checkout / "scripts/write_statement.py", dist], check=True)
        statement = json.loads((dist / "septet.intoto.json").read_text())
        return statement["predicate"]["buildDefinition"]["internalParameters"]["changed"]

    assert is_changed() is False
    (checkout / "septet/extra.py").touch()
    assert is_changed() is True


@pytest.mark.parametrize(
    ("report", "told", "code"),
    [
        ("", "not checked: the service of advisories did not answer\n", 0),
        (
            '{"dependencies": [{"skip_reason": "?"}, {"name": "a", "version": "1", "vulns": [{"id": "P-1", "fix_versions": ["2"]}]}]}',
            "checked 1 packages, not checked 1, advisories 1\na 1: P-1, mended in 2\n",
            1,
        ),
    ],
    ids=["unreachable", "found"],
)
def test_advisories_are_told_and_what_was_not_checked_is_no_good_news(
    tmp_path: Path, report: str, told: str, code: int
) -> None:
    """A package that could not be checked counts as not checked, and an advisory fails the release."""
    file = tmp_path / "audit.json"
    file.write_text(report)
    done = run_script("write_advisories.py", file)
    assert (done.stdout, done.returncode) == (told, code)


LISTED = {
    "distribution": "debian-12",
    "debian": [{"package": "git", "version": "1:2.39.5-0+deb12u2", "architecture": "amd64"}],
    "python": [
        {"package": "Jinja2", "version": "3.1.6", "licence": "BSD-3-Clause"},
        {"package": "typing_extensions", "version": "4.15.0", "licence": ""},
    ],
    "npm": [{"package": "@openai/codex", "version": "0.169.0", "licence": ""}],
}


def write_bom(digest: str, listed: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "scripts/write_image_bom.py"), "septet", digest]
    return subprocess.run(argv, input=json.dumps(listed), capture_output=True, text=True, check=False)


def test_the_bill_of_an_image_names_each_package_in_its_own_world() -> None:
    """The bill has scanners' addresses for packages of Debian, Python and npm, and is always the same."""
    done = write_bom(f"sha256:{'0' * 64}", LISTED)
    bill = json.loads(done.stdout)
    assert [each["purl"] for each in bill["components"]] == [
        "pkg:deb/debian/git@1%3A2.39.5-0%2Bdeb12u2?arch=amd64&distro=debian-12",
        "pkg:pypi/jinja2@3.1.6",
        "pkg:pypi/typing-extensions@4.15.0",
        "pkg:npm/%40openai/codex@0.169.0",
    ]
    assert bill["components"][1]["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]
    assert write_bom(f"sha256:{'0' * 64}", LISTED).stdout == done.stdout


NPM = """\
#!/bin/sh
mkdir -p node_modules/@anthropic-ai/claude-code-linux-x64
cd node_modules/@anthropic-ai/claude-code-linux-x64
printf '{"name": "@anthropic-ai/claude-code-linux-x64", "version": "2.1.329", "license": "SEE LICENSE"}' > package.json
printf '#!/bin/sh\\n' > claude
chmod +x claude
"""


def test_the_clis_that_an_image_installs_are_listed(tmp_path: Path) -> None:
    """The list has the CLI that `docker/agents/install` installed, with its version and licence."""
    build, programs = tmp_path / "build", tmp_path / "bin"
    shutil.copytree(ROOT / "docker/agents", build)
    write_program(programs / "npm", NPM)
    write_program(programs / "node", "#!/bin/sh\necho x64\n")
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run([build / "install", tmp_path / "agents", "claude"], env=env, check=True)
    assert LIST_PACKAGES["npm"](tmp_path / "agents") == [
        {"package": "@anthropic-ai/claude-code-linux-x64", "version": "2.1.329", "licence": "SEE LICENSE"}
    ]


def test_the_notes_of_a_release_say_what_becomes_of_running_work_orders() -> None:
    """The notes have the release's changes, and say whether work orders of earlier releases continue."""
    script = [sys.executable, str(ROOT / "scripts" / "write_release_notes.py")]
    notes = subprocess.run([*script, "0.2.0"], capture_output=True, text=True, check=True).stdout
    changes, _, compatibility = notes.partition("\n## Workflow compatibility\n")
    assert changes.startswith("# Septet 0.2.0\n")
    assert "### From an issue to a pull request" in changes
    assert compatibility.strip().startswith("No work order of an earlier release continues under this release")
    refused = subprocess.run([*script, "9.9.9"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (1, "CHANGELOG.md has no section 9.9.9.\n")


CHANGES = "## Unreleased\n\n- A.\n\n## 0.1.1\n\n- B.\n\n## 0.1.0\n\n- C.\n"
PATCHES = "| `old` | 0.1.0 | of the first |\n"


@pytest.mark.parametrize(
    ("version", "patches", "new"),
    [
        ("0.1.0", PATCHES, ["old"]),
        ("0.1.1", PATCHES, []),
        ("Unreleased", PATCHES + "| `next` | 0.2.0 | of the next |\n", ["next"]),
    ],
    ids=["its own", "a patch release", "of no release yet"],
)
def test_the_notes_of_a_release_tell_its_own_patches_alone(version: str, patches: str, new: list[str]) -> None:
    """The notes name only the release's own patches; without a patch the administrator can go back at any time."""
    notes = runpy.run_path(str(ROOT / "scripts/write_release_notes.py"))["release_notes"]
    text = notes(version, CHANGES, patches, ["0.10.0", "0.8.0", "0.9.0"])
    assert re.findall(r"^- `(\w+)`", text, re.MULTILINE) == new
    assert ("brings no patch" in text) is (new == [])
    assert "Work orders that 0.9.0 and 0.10.0 began" in text
