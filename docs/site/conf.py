"""The site: the pages of docs as HTML, with the headers of include/xtape. scripts/docs.sh builds it."""
import os
import pathlib
import re

import furo
from sphinx.util.nodes import make_refnode

project, author, html_title = "xtape", "the authors of xtape", "xtape"
extensions = ["myst_parser", "breathe"]
root_doc = "index"
exclude_patterns = ["site/**", "README.md"]  # index.rst includes README.md
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3
breathe_projects = {"xtape": os.environ.get("XTAPE_DOXYGEN", "")}
breathe_default_project = "xtape"
breathe_show_include = False
primary_domain = highlight_language = "cpp"
html_theme = "furo"
html_show_sphinx = html_copy_source = html_show_copyright = False
# Debian's furo lacks two things: the file that its style sheet imports, and the dark colours for readers whose system is dark.
furo_css = pathlib.Path(furo.__file__).parent / "theme/furo/static/styles/furo.css"
dark = re.search(r'body\[data-theme="dark"\] \{([^}]*)\}', furo_css.read_text())
html_theme_options = {"dark_css_variables": dict(re.findall(r"--([\w-]+): ([^;]+);", dark[1]))}
html_css_files = [("normalize.css", {"priority": 100}), "site.css"]
html_static_path = ["static", "/usr/share/javascript/normalize.css/normalize.css"]
breathe_default_members = ("members",)
breathe_implementation_filename_extensions = []
suppress_warnings = ["misc.highlighting_failure"]  # of code with `…`

# The pages below a page, in the order of the navigation.
pages_below = {
    "reference/definitions": "language blocks modules files states published_weights mapping adapters",
    "reference/models": "language_models encoder_decoders encoders vision recurrent blocks",
    "reference/recipes": "data text tables images model functions batches optimisation privacy runs commands examples",
    "reference/ops": "elementwise activations reductions creation random shapes products indexing order linear_algebra convolution resampling"
           " losses control internal",
    "architecture": "walkthrough base tape ops grad rewrite kernels player functions optim ranks nn inspect data model decode train onnx cli",
}


def add_below(app, page, source):
    """A page that has pages below it gets their list, which is not shown."""
    names = app.config.pages_below.get(page, "").split()
    if names:
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(f"{pathlib.PurePath(page).name}/{name}" for name in names) + "\n```\n"


def beside_docs(app, env, node, contnode):
    """A link to the gallery leads to the page that includes it; a link to another file beside docs becomes its text."""
    gallery = (pathlib.Path(env.srcdir).parent / "examples" / "README.md").resolve()
    folder = gallery.parent if node["refdoc"] == "examples" else (pathlib.Path(env.srcdir) / node["refdoc"]).parent
    file = (folder / node["reftarget"]).resolve()
    if file == gallery:
        return make_refnode(app.builder, node["refdoc"], "examples", None, contnode)
    return contnode if file.is_file() else None


def setup(app):
    app.connect("missing-reference", beside_docs)
    app.connect("source-read", add_below)
    app.add_config_value("pages_below", {}, "env")  # another list reads the pages again
