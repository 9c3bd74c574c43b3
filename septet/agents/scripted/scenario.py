"""What goes wrong: a scenario from a file, checked, and the script of one start of one step."""

from __future__ import annotations

import json
from pathlib import Path

from septet.agents.scripted.arguments import Refusal
from septet.agents.scripted.malformed import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NUMBER = (int, float)
_TOP = {"model": (str,), "cost_usd": _NUMBER, "tokens": (dict,), "journal": (str,), "steps": (dict,)}
_SCRIPT = {
    "answer": (str, dict),
    "malformed": (str,),
    "finalizer": (dict, list),
    "refuse": (str,),
    "put_over": (dict,),
    "edits": (dict,),
    "crash_after_edits": (int,),
    "delay_seconds": _NUMBER,
    "wait_for": (str,),
    "idle_seconds": _NUMBER,
    "hang": (bool,),
    "ignore_sigterm": (bool,),
    "extra_turns": (int,),
    "api_error": (int,),
    "big_output_bytes": (int,),
    "background_seconds": _NUMBER,
}
_STEPS = frozenset(
    {
        "classify_issue", "build_plan", "find_plan_file", "generate_branch", "implement_plan", "create_commit",
        "create_pull_request", "rework", "read_outgoing", "*",
    }
)  # fmt: skip


class Script:
    """What happens in one start of a step. Without a word in the scenario, all goes well."""

    def __init__(self, content: dict[str, Any]) -> None:
        """Read one checked script of a scenario."""
        self.answer: str | dict[str, Any] | None = content.get("answer")
        self.malformed: str | None = content.get("malformed")
        self.refuse: str | None = content.get("refuse")
        self.put_over: dict[str, Any] = content.get("put_over", {})
        self.edits: dict[str, str | None] | None = content.get("edits")
        self.crash_after_edits: int | None = content.get("crash_after_edits")
        self.delay_seconds: float = content.get("delay_seconds", 0)
        self.wait_for: str = content.get("wait_for", "")
        self.idle_seconds: float = content.get("idle_seconds", 0)
        self.hang: bool = content.get("hang", False)
        self.ignore_sigterm: bool = content.get("ignore_sigterm", False)
        self.extra_turns: int = content.get("extra_turns", 0)
        self.api_error: int | None = content.get("api_error")
        self.big_output_bytes: int = content.get("big_output_bytes", 0)
        self.background_seconds: float = content.get("background_seconds", 0)
        self._finalizer: Any = content.get("finalizer", {})

    def finalizer(self, turn: int) -> Script:
        """Return what happens at the `turn`th turn, from 1, that asks for the JSON alone."""
        return _one_of(self._finalizer, turn)


class Scenario:
    """A checked scenario."""

    def __init__(self, name: str, content: dict[str, Any]) -> None:
        """Keep `content`, of which each part is checked.

        Raises:
            Refusal: A key is unknown or a value is of another type.
        """
        _check(name, content, _TOP)
        self.is_given = bool(name)
        self.model: str = content.get("model", "scripted-1")
        self.cost_usd: float = content.get("cost_usd", 0.0)
        self.tokens: dict[str, int] = content.get("tokens", {})
        self.journal: str = content.get("journal", "")
        self._steps: dict[str, Any] = content.get("steps", {})
        for step, scripts in self._steps.items():
            if step not in _STEPS:
                raise Refusal(f"Error: scenario {name}: {step} is not a step.")
            for script in _list_of(scripts):
                _check_script(f"{name}: {step}", script)

    def script(self, step: str, start: int) -> Script:
        """Return what happens at the `start`th start, from 1, of `step`."""
        return _one_of(self._steps.get(step, self._steps.get("*", {})), start)


def load_scenario(name: str) -> Scenario:
    """Load a scenario by the name of a built-in one or by a path; the empty name is no scenario.

    Raises:
        Refusal: There is no such file, it is no JSON object, or something in it is unknown.
    """
    if not name:
        return Scenario("", {})
    path = Path(__file__).parent / "scenarios" / f"{name}.json" if name.isidentifier() else Path(name)
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise Refusal(f"Error: there is no scenario {name}") from error
    except (OSError, ValueError) as error:
        raise Refusal(f"Error: scenario {name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise Refusal(f"Error: scenario {name} is not a JSON object.")
    return Scenario(name, content)


def built_in_scenarios() -> list[str]:
    """Return the names of the scenarios that come along."""
    return sorted(path.stem for path in (Path(__file__).parent / "scenarios").glob("*.json"))


def _check_script(place: str, script: object) -> None:
    if not isinstance(script, dict):
        raise Refusal(f"Error: scenario {place}: a script is a JSON object.")
    _check(place, script, _SCRIPT)
    if script.get("malformed", "prose") not in KINDS:
        raise Refusal(f"Error: scenario {place}: malformed is one of {', '.join(KINDS)}.")
    for finalizer in _list_of(script.get("finalizer", [])):
        _check_script(f"{place}: finalizer", finalizer)


def _check(place: str, content: dict[str, Any], kinds_of: Mapping[str, tuple[type, ...]]) -> None:
    for key, value in content.items():
        kinds = kinds_of.get(key)
        if kinds is None:
            raise Refusal(f"Error: scenario {place}: {key} is unknown.")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise Refusal(f"Error: scenario {place}: {key} is of the wrong type.")


def _list_of(scripts: object) -> list[Any]:
    return scripts if isinstance(scripts, list) else [scripts]


def _one_of(scripts: object, number: int) -> Script:
    listed = _list_of(scripts) or [{}]
    return Script(listed[min(number, len(listed)) - 1])
