"""What models do to an answer that was to be one JSON object."""

import json
from collections.abc import Callable

Answer = dict[str, object]


def _text(answer: Answer) -> str:
    return json.dumps(answer, ensure_ascii=False)


def _in_prose(answer: Answer) -> str:
    return f"All done, and the tests pass.\n\n{_text(answer)}\n\nLet me know if you want anything else."


def _fence(answer: Answer) -> str:
    return f"Here is the answer:\n\n```json\n{json.dumps(answer, ensure_ascii=False, indent=2)}\n```\n"


def _truncate(answer: Answer) -> str:
    text = _text(answer)
    return f"All done. {text[: max(len(text) - len(text) // 4 - 1, 1)]}"


def _single_quotes(answer: Answer) -> str:
    return str(answer)


def _trailing_comma(answer: Answer) -> str:
    return _text(answer)[:-1] + ",}"


def _wrong_type(answer: Answer) -> str:
    return _text(
        {key: str(value).lower() if isinstance(value, bool) else [value] for key, value in answer.items()}
    )


def _missing_key(answer: Answer) -> str:
    return _text(dict(list(answer.items())[1:]))


def _extra_key(answer: Answer) -> str:
    return _text({**answer, "confidence": 0.9})


def _conflict(answer: Answer) -> str:
    turned: Answer = {
        key: (not value) if isinstance(value, bool) else f"not {value}" for key, value in answer.items()
    }
    return f"{_text(answer)}\n\nOn second thought:\n\n{_text(turned)}"


def _double_encoded(answer: Answer) -> str:
    return json.dumps(_text(answer))


def _empty(_answer: Answer) -> str:
    return ""


def _null(_answer: Answer) -> str:
    return "null"


def _prose(_answer: Answer) -> str:
    return "Good news: I have finished everything that was asked for, and it all looks fine."


KINDS: dict[str, Callable[[Answer], str]] = {
    "prose_around": _in_prose,
    "fenced": _fence,
    "truncated": _truncate,
    "single_quotes": _single_quotes,
    "trailing_comma": _trailing_comma,
    "wrong_type": _wrong_type,
    "missing_key": _missing_key,
    "extra_key": _extra_key,
    "conflict": _conflict,
    "double_encoded": _double_encoded,
    "empty": _empty,
    "null": _null,
    "prose": _prose,
}
"""By name: the final text in place of the answer. Some the answer ladder reads, the others it must refuse."""
