"""Take the pictures of docs/pictures/ again: board, plan, work order, pipeline and Temporal's web UI, in Chromium.

The pictures show a new `septet up` with the sample repository and another repository; it ends with the script.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakes.septet_command import Running, Septet
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 1280
PHONE_WIDTH = 390
WITHIN_MS = 120_000
"""The most milliseconds until a page is painted; a busy machine paints slowly."""
FAILS = {"steps": {"implement_plan": {"refuse": "The price list and the till disagree on who rounds."}}}

PRICES = [
    {"id": "cents", "title": "Keep prices in cents", "body": "Floats lose some."},
    {
        "id": "labels",
        "title": "Print the unit price on labels",
        "body": "By kilo or litre.",
        "depends_on": ["cents"],
    },
    {"id": "vouchers", "title": "Print vouchers", "body": "Ten kinds."},
    {"id": "sale", "title": "Prices of the summer sale", "body": "From a list.", "depends_on": ["labels"]},
]


def take() -> None:
    """Make the work orders and take all pictures."""
    from fakes.browser import chromium
    from fakes.septet_command import Septet

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="shop-") as folder:
        septet = Septet(Path(folder))
        with septet.up() as running, chromium() as browser:
            _set_the_scene(septet)
            home = running.ready["page"].partition("/?")[0]
            page = browser.new_page(viewport={"width": WIDTH, "height": 800}, base_url=home)
            page.set_default_timeout(WITHIN_MS)
            page.goto(running.ready["page"])
            _picture(page, "board.png", "/", ".stage-executing .card")
            page.emulate_media(color_scheme="dark")
            _picture(page, "board-dark.png", "/", ".stage-executing .card")
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": PHONE_WIDTH, "height": 844})
            _picture(page, "board-phone.png", "/", ".stage-executing .card")
            page.set_viewport_size({"width": WIDTH, "height": 1100})
            _picture(page, "plan.png", "/work-orders/wo-tax", "#approve")
            _picture(page, "work-order.png", "/work-orders/wo-discount", ".steps .now")
            page.set_viewport_size({"width": WIDTH, "height": 550})
            _picture(page, "pipeline.png", "/pipeline/pl-prices", ".badge.executing")
            _temporal(page, running)


def _set_the_scene(septet: "Septet") -> None:
    """Leave work orders in every stage; one work order waits for a file that never appears."""
    from fakes.repositories import make_origin
    from fakes.waiting import until

    from septet.forges.local.forge import LocalForge
    from septet.sample import make_sample

    env = septet.env
    shop = make_sample(septet.root / "sample", lambda at, *text: LocalForge(at, env).add_issue(*text).number, env)
    till = make_origin(septet.root / "till", "till.git")
    till.push({"README.md": "# till\n", "till.py": "print('total')\n"})
    at_till = ("--repo", str(till.bare), "--json")

    for title, name in (("Print the date on receipts", "wo-date"), ("Send receipts by mail", "wo-receipt")):
        _done(septet("run", *at_till, "--title", title, "--id", name, "--wait"))
    _done(septet("move", "wo-date", "done", "--json"))
    septet.scenario("wo-rounding", FAILS)
    septet("run", *at_till, "--title", "Totals are rounded twice", "--id", "wo-rounding", "--wait")
    _done(septet("create", *at_till, "--title", "Prices in several currencies", "--id", "wo-currencies"))
    _done(septet("create", *at_till, "--title", "Sort receipts by day", "--id", "wo-sorted", "--priority", "5"))
    tax = ("--title", "Ask before the tax table changes", "--id", "wo-tax", "--approve-plan")
    _done(septet("run", *at_till, *tax))
    until(lambda: septet("show", "wo-tax", "--json").json["task"]["status"] == "waiting")
    septet.scenario("wo-discount", {"steps": {"create_commit": {"wait_for": str(septet.root / "never")}}})
    _done(septet("run", "--repo", shop.origin, "--issue", str(shop.issue), "--id", "wo-discount", "--json"))
    until((septet.state / "runs" / "wo-discount" / "6-create_commit-1" / "run.json").exists)
    _set_a_pipeline_up(septet, till.bare)


def _set_a_pipeline_up(septet: "Septet", repository: Path) -> None:
    """Leave a pipeline with issues in several stages; one issue waits for a file that was removed."""
    from fakes.waiting import until

    file, gate = septet.root / "prices.json", septet.root / "gate"
    file.write_text(json.dumps(PRICES), encoding="utf-8")
    gate.touch()
    septet.scenario("pl-prices-executor-1", {"steps": {"create_commit": {"wait_for": str(gate)}}})
    _done(septet("pipeline", "--repo", str(repository), "--file", str(file), "--id", "pl-prices", "--json"))
    _done(septet("pipeline", "skip", "pl-prices", "vouchers", "--why", "the supplier prints them", "--json"))

    def has_come(number: int, status: str) -> bool:
        found = septet("pipeline", "show", "pl-prices", "--json").json["pipeline"]["issues"]
        return bool(found[number:]) and bool(found[number]["status"] == status)

    until(lambda: has_come(0, "completed"))
    gate.unlink()
    until(lambda: has_come(1, "executing"))


def _picture(page: "Page", name: str, path: str, shows: str) -> None:
    page.goto(path)
    page.locator(".live.on").wait_for()
    page.locator(shows).first.wait_for()
    page.screenshot(path=PICTURES / name, animations="disabled")
    print(f"docs/pictures/{name}")


def _temporal(page: "Page", running: "Running") -> None:
    page.set_viewport_size({"width": WIDTH, "height": 1020})  # the timeline is painted once it is near
    page.goto(f"{running.ready['ui']}/namespaces/default/workflows/wo-receipt")
    page.get_by_text("create_pull_request").first.wait_for()
    page.get_by_role("heading", name="Timeline").evaluate("heading => heading.scrollIntoView()")
    page.screenshot(path=PICTURES / "temporal.png", animations="disabled")
    print("docs/pictures/temporal.png")


def _done(ended: object) -> None:
    """Exit unless a command succeeded."""
    code = getattr(ended, "code", None)
    if code != 0:
        sys.exit(json.dumps(str(ended)))


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    take()
