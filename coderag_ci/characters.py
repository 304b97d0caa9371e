"""Characters that a reader does not see, or that move what a reader sees.

Bidirectional controls, zero-width and other default-ignorable characters (Unicode's property
Default_Ignorable_Code_Point), line and paragraph separators, control characters, and the
surrogates that stand for bytes which are not UTF-8.
"""

from __future__ import annotations

import re

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)

# What is kept looks at characters alone that are always kept, so that writing the others out
# makes nothing hidden that was not: an emoji's variation selector, and what joins two emoji.
_FOUND = re.compile(
    rf"(?<![{_EMOJI}])[\ufe0e\ufe0f]"
    rf"|(?<![{_EMOJI}])(?<![{_EMOJI}]\ufe0f)\u200d|\u200d(?![{_EMOJI}])"
    rf"|(?![\ufe0e\ufe0f\u200d])[{_HIDDEN}]"
)


def hidden(text: str) -> list[tuple[int, str]]:
    """Return each hidden character with its place in the text; tabs and line ends are none.

    An emoji's own variation selectors and joiners are part of what is seen.
    """
    if text.isascii() and text.isprintable():  # most lines, at once
        return []
    return [(match.start(), match[0]) for match in _FOUND.finditer(text)]


def visible(text: str) -> str:
    """Write each hidden character out as ``‹U+202E›``; none is left."""
    return _FOUND.sub(lambda match: f"‹{code_point(match[0])}›", text)


def code_point(character: str) -> str:
    """Return ``U+202E``."""
    return f"U+{ord(character):04X}"
