"""The tokens that a model's answer says it used, read as the answer passes by."""

import re

USED = re.compile(
    rb'"(input_tokens|cache_read_input_tokens|cache_creation_input_tokens|prompt_tokens|promptTokenCount|inputTokens'
    rb"|cacheReadInputTokens|cacheWriteInputTokens|output_tokens|completion_tokens|candidatesTokenCount"
    rb'|thoughtsTokenCount|outputTokens)"\s*:\s*([0-9]{1,12})'
)
"""As four APIs and Bedrock name them. What a model says stands within a JSON text, where a quote is escaped."""
OUTPUT = frozenset(
    {b"output_tokens", b"completion_tokens", b"candidatesTokenCount", b"thoughtsTokenCount", b"outputTokens"}
)
LONGEST = 64
"""Of such a name with its number, in bytes."""


class SeenUsage:
    """What one answer has said so far; a later figure of a stream is never smaller."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self.end = b""
        self.most: dict[bytes, int] = {}

    def take(self, data: bytes) -> None:
        """Read the next bytes, cut anywhere."""
        text = self.end + data
        for name, number in USED.findall(text):
            self.most[name] = max(self.most.get(name, 0), int(number))
        self.end = text[-LONGEST:]

    @property
    def tokens(self) -> tuple[int, int]:
        """Those of the input, with what came from a cache, and those of the output."""
        output = sum(number for name, number in self.most.items() if name in OUTPUT)
        return sum(self.most.values()) - output, output
