"""Sphinx extension: each page as Markdown next to its HTML, and llms.txt, which lists them from the toctrees.

https://llmstxt.org describes the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.text import TextBuilder
from sphinx.environment import BuildEnvironment
from sphinx.writers.text import TextTranslator

_TOCTREE: Final = re.compile(r"(?ms)^```\{toctree\}\n.*?^```\n")
_AUTODOC: Final = re.compile(r"(?ms)^```\{eval-rst\}\n.*?^```\n")
_TARGET: Final = re.compile(r"(?<=\]\()[^)\s#]+")
_SENTENCE: Final = re.compile(r".+?(?:[.!?](?=\s)|$)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the extension to a build of the site."""
    app.add_config_value("llms_optional", "", "html", str)
    app.connect("html-page-context", _name_the_copy)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _name_the_copy(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:  # noqa: ARG001
    if page in app.env.found_docs:
        copy = f"{posixpath.basename(page)}.md"
        context["metatags"] += f'<link rel="alternate" type="text/markdown" href="{copy}">'


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    moved = _moved(app.env)
    for page in app.env.found_docs:
        copy = app.outdir / f"{page}.md"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(_markdown(app, page, moved), encoding="utf-8")
    (app.outdir / "llms.txt").write_text(_index(app.env, app.config.llms_optional), encoding="utf-8")


def _moved(env: BuildEnvironment) -> dict[str, str]:
    """Places in the site of files that pages show or link, by their paths from the folder of the pages."""
    shown = {str(path): f"_images/{name}" for path, (_, name) in env.images.items()}
    return shown | {str(path): f"_downloads/{name}" for path, (_, name) in env.dlfiles.items()}


def _markdown(app: Sphinx, page: str, moved: dict[str, str]) -> str:
    folder, tree = posixpath.dirname(page), app.env.get_doctree(page)
    text = Path(app.env.doc2path(page)).read_text(encoding="utf-8")
    lists = [_links(app.env, folder, node) for node in tree.findall(addnodes.toctree)]
    text = _replaced(_TOCTREE, lists, text)
    text = _replaced(_AUTODOC, list(_docstrings(app, tree)), text)

    def target(found: re.Match[str]) -> str:
        path = moved.get(posixpath.normpath(posixpath.join(folder, found[0])))
        return posixpath.relpath(path, folder or ".") if path else found[0]

    return _TARGET.sub(target, text)


def _replaced(pattern: re.Pattern[str], by: list[str], text: str) -> str:
    parts = pattern.split(text)
    assert len(parts) == len(by) + 1, text[:80]
    return "".join(one for pair in zip(parts, [*by, ""], strict=True) for one in pair)


def _links(env: BuildEnvironment, folder: str, tree: addnodes.toctree) -> str:
    if tree["hidden"]:
        return ""
    pages = ((env.titles[page].astext(), posixpath.relpath(page, folder or ".")) for page in tree["includefiles"])
    return "".join(f"- [{title}]({path}.md)\n" for title, path in pages)


def _docstrings(app: Sphinx, tree: nodes.document) -> Iterator[str]:
    """Yield the text of autodoc for each section that asks for it."""
    builder = TextBuilder(app, app.env)
    for section in tree.findall(nodes.section):
        if found := [node.deepcopy() for node in section.children if isinstance(node, addnodes.desc)]:
            document = new_document("", tree.settings)
            document += found
            translator = TextTranslator(document, builder)
            document.walkabout(translator)
            yield f"```text\n{translator.body.strip()}\n```\n"


def _index(env: BuildEnvironment, optional: str) -> str:
    root = env.config.root_doc
    parts = [
        f"# {env.titles[root].astext()}\n\n> {_lead(env, root)}\n",
        "Each page of the site is also Markdown: its address ends in `.md` instead of `.html`.\n",
    ]
    last: list[str] = []
    for tree in env.get_doctree(root).findall(addnodes.toctree):
        pages = [f"- {_entry(env, page)}\n" for first in tree["includefiles"] for page in _with_children(env, first)]
        is_optional = tree["caption"] == optional
        (last if is_optional else parts).append(
            f"## {'Optional' if is_optional else tree['caption']}\n\n{''.join(pages)}"
        )
    return "\n".join(parts + last)


def _with_children(env: BuildEnvironment, page: str) -> Iterator[str]:
    yield page
    for child in env.toctree_includes.get(page, ()):
        yield from _with_children(env, child)


def _entry(env: BuildEnvironment, page: str) -> str:
    link = f"[{env.titles[page].astext()}]({page}.md)"
    sentence = _SENTENCE.match(_lead(env, page))
    return f"{link}: {sentence[0].rstrip('.:')}" if sentence else link


def _lead(env: BuildEnvironment, page: str) -> str:
    """Return the first paragraph of a page, on one line."""
    [section] = [node for node in env.get_doctree(page).children if isinstance(node, nodes.section)]
    found = (node.astext() for node in section.children if isinstance(node, nodes.paragraph))
    return " ".join(next(found, "").split())
