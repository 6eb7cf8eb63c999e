"""Sphinx: the pages of this folder as a site. `make docs` builds it strictly, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / source) for source in ("infra", "lambdas", "docs")]

project = "DynamoDB counters"
author = "The DynamoDB counters authors"
language = "en"

extensions = ["myst_parser", "plain_markdown", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# The pages also read well on the repository's host: plain Markdown, links from file to file, its anchors of headings.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Docstrings: NumPy style; a name in backticks is a link where it is one of the reference.
default_role = "py:obj"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # what stands in backticks need not be a name of the reference
    ("py:class", ".*"),  # types in words, such as "mapping of str to object", and those of AWS's libraries
    ("py:exc", ".*"),
]

llms_optional = "Evidence"  # a caption of docs/index.md

html_theme = "furo"
html_title = "DynamoDB counters"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b62a8", "color-brand-content": "#0b62a8"},
    "dark_css_variables": {"color-brand-primary": "#6cb6ff", "color-brand-content": "#6cb6ff"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
