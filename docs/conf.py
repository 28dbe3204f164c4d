"""Sphinx: `tools/docs` builds the site, without a warning; docs/README.md says what it needs."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "fastlinalg"
author = "the authors of fastlinalg"
header = (HERE.parent / "cpp" / "include" / "fastlinalg" / "fastlinalg.h").read_text()
version = release = ".".join(re.findall(r"#define FL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

extensions = [
    "course",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_drawings", "_templates", "README.md"]
root_doc = "index"
if tags.has("course"):  # noqa: F821  (Sphinx puts it there)
    root_doc = "course/index"
    exclude_patterns += [path.name for path in HERE.glob("*.md")] + ["guide", "notes", "reference"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
templates_path = ["_templates"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the types stand in the docstrings
autodoc_mock_imports = ["torch"]  # which the reference of fastlinalg.torch does without
highlight_language = "python"
doctest_global_setup = "import numpy as np\nimport fastlinalg as fl"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["myst.header"]  # docs/kernels.md has its parts under a heading of the third level

html_theme = "furo"
html_title = f"fastlinalg {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fc4", "color-brand-content": "#1f5fc4"},
    "dark_css_variables": {"color-brand-primary": "#7fb0ff", "color-brand-content": "#7fb0ff"},
}
