"""A pack as text: Markdown or HTML for people, JSON for programs, a prompt for a model."""

from __future__ import annotations

from coderag_ci.pack import Pack

FORMATS = ("markdown", "json", "prompt", "html")


def render(pack: Pack, form: str) -> str:
    """Render a pack in one of ``FORMATS``."""
    if form == "json":
        from coderag_ci.render import as_json

        return as_json.render(pack)
    if form == "prompt":
        from coderag_ci.render import prompt

        return prompt.render(pack)
    if form == "html":
        from coderag_ci.render import html

        return html.render(pack)
    from coderag_ci.render import markdown

    return markdown.render(pack)
