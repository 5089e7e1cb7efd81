"""`document`: a whole page, with the policy by which a browser loads and runs nothing but its own content."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from .templates import FOLDER, filled

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A page.

    Attributes:
        html: The document, complete.
        policy: Its Content-Security-Policy. The document states it, too; a server also sends it as a header.
    """

    html: str
    policy: str


def document(title: str, body: Markup, *, scripts: Sequence[str] = (), fetches: bool = False) -> HtmlPage:
    """Return a page with this body. It has the style of all pages, and the script of charts.

    Args:
        title: Its title.
        body: Its body, from a template.
        scripts: More scripts, as text. They come from our own files: they are not escaped.
        fetches: True if its scripts may ask the page's own server for more. They can reach nothing else.
    """
    style, all_scripts = _own("style.css"), [_own("chart.js"), *scripts]
    rules = {
        "default-src": "'none'",
        "style-src": _digest(style),
        "script-src": " ".join(map(_digest, all_scripts)),
        "img-src": "data:",  # the icon
        "base-uri": "'none'",
        "form-action": "'none'",
        **({"connect-src": "'self'"} if fetches else {}),
    }
    policy = "; ".join(f"{name} {value}" for name, value in rules.items())
    html = filled(
        "document.html", FOLDER, title=title, body=body, style=style, scripts=all_scripts, policy=policy, generator="context-window pages"
    )
    return HtmlPage(str(html), policy)


@cache
def _own(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
