"""Scenarios: files that describe the scripted agent's failures, by a script for each start of a step."""

from __future__ import annotations

import json
from pathlib import Path

from septet.agents.scripted.arguments import RefusalError
from septet.agents.scripted.task import STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar

NUMBER = (int, float)


class Script:
    """What the agent does in one start of a step; an empty script means no failure."""

    keys: ClassVar[dict[str, tuple[type, ...]]] = {
        "malformed": (str,),
        "finalizer": (dict, list),
        "refuse": (str,),
        "put_over": (dict,),
        "edits": (dict,),
        "crash_after_edits": (int,),
        "delay_seconds": NUMBER,
    }
    malformed_kinds: ClassVar[tuple[str, ...]] = ("truncated", "prose")

    def __init__(self, content: dict[str, Any]) -> None:
        """Read a script that a `Scenario` has checked."""
        self.malformed: str | None = content.get("malformed")
        self.refuse: str | None = content.get("refuse")
        self.put_over: dict[str, Any] = content.get("put_over", {})
        self.edits: dict[str, str | None] | None = content.get("edits")
        self.crash_after_edits: int | None = content.get("crash_after_edits")
        self.delay_seconds: float = content.get("delay_seconds", 0)
        self._finalizer: Any = content.get("finalizer", {})

    def finalizer(self, turn: int) -> Script:
        """Return the script for the finalizer's turn with the number `turn`, from 1."""
        return type(self)(_one_of(self._finalizer, turn))

    def text_for(self, answer: dict[str, Any]) -> str | None:
        """Return the text to print in place of the answer's JSON; `None` to print the JSON."""
        if self.malformed is not None:
            return self.malform(self.malformed, answer)
        has_own_words = answer.keys() & {"success", "status"}
        return self.refuse if self.refuse is not None and not has_own_words else None

    def malform(self, kind: str, answer: dict[str, Any]) -> str:
        """Return the answer as a text that is no JSON object, with a fault of this kind."""
        if kind == "prose":
            return "Good news: I have finished everything that was asked for, and it all looks fine."
        text = json.dumps(answer, ensure_ascii=False)
        return f"All done. {text[: max(len(text) - len(text) // 4 - 1, 1)]}"


class Scenario:
    """A checked scenario, which has scripts for steps."""

    keys: ClassVar[dict[str, tuple[type, ...]]] = {"steps": (dict,)}
    script_type: ClassVar[type[Script]] = Script

    def __init__(self, name: str, content: dict[str, Any]) -> None:
        """Take a scenario's name and content, and check all parts of the content.

        Raises:
            RefusalError: A key is unknown or a value has the wrong type.
        """
        _check(name, content, self.keys)
        self.is_given = bool(name)
        self._steps: dict[str, Any] = content.get("steps", {})
        for step, scripts in self._steps.items():
            if step not in {*STEPS, "*"}:
                raise RefusalError(f"Error: scenario {name}: {step} is not a step.")
            for script in _list_of(scripts):
                self._check_script(f"{name}: {step}", script)

    def script(self, step: str, start: int) -> Script:
        """Return the script for the start of `step` with the number `start`, from 1."""
        return self.script_type(_one_of(self._steps.get(step, self._steps.get("*", {})), start))

    def _check_script(self, place: str, script: object) -> None:
        if not isinstance(script, dict):
            raise RefusalError(f"Error: scenario {place}: a script is a JSON object.")
        _check(place, script, self.script_type.keys)
        kinds = self.script_type.malformed_kinds
        if script.get("malformed", "prose") not in kinds:
            raise RefusalError(f"Error: scenario {place}: malformed is one of {', '.join(kinds)}.")
        for finalizer in _list_of(script.get("finalizer", [])):
            self._check_script(f"{place}: finalizer", finalizer)


def load_scenario(name: str, scenario_type: type[Scenario] = Scenario) -> Scenario:
    """Load a scenario by a built-in name or by a path; an empty name gives a scenario without failures.

    Raises:
        RefusalError: The file is missing, is no JSON object, or has an unknown key.
    """
    if not name:
        return scenario_type("", {})
    path = Path(__file__).parent / "scenarios" / f"{name}.json" if name.isidentifier() else Path(name)
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise RefusalError(f"Error: there is no scenario {name}") from error
    except (OSError, ValueError) as error:
        raise RefusalError(f"Error: scenario {name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise RefusalError(f"Error: scenario {name} is not a JSON object.")
    return scenario_type(name, content)


def built_in_scenarios() -> list[str]:
    """Return the names of the built-in scenarios."""
    return sorted(path.stem for path in (Path(__file__).parent / "scenarios").glob("*.json"))


def _check(place: str, content: dict[str, Any], kinds_of: Mapping[str, tuple[type, ...]]) -> None:
    for key, value in content.items():
        kinds = kinds_of.get(key)
        if kinds is None:
            raise RefusalError(f"Error: scenario {place}: {key} is unknown.")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise RefusalError(f"Error: scenario {place}: {key} is of the wrong type.")


def _list_of(scripts: object) -> list[Any]:
    return scripts if isinstance(scripts, list) else [scripts]


def _one_of(scripts: object, number: int) -> dict[str, Any]:
    listed = _list_of(scripts) or [{}]
    script: dict[str, Any] = listed[min(number, len(listed)) - 1]
    return script
