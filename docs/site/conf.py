"""The site: the pages of docs as HTML, with the headers of include/xtape. scripts/docs.sh builds it."""
import os

project, author, html_title = "xtape", "the authors of xtape", "xtape"
extensions = ["myst_parser", "breathe"]
root_doc = "index"
exclude_patterns = ["site/**"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3
breathe_projects = {"xtape": os.environ.get("XTAPE_DOXYGEN", "")}
breathe_default_project = "xtape"
breathe_show_include = False
primary_domain = highlight_language = "cpp"
html_theme = "furo"
html_show_sphinx = html_copy_source = html_show_copyright = False
html_css_files, html_static_path = ["site.css"], ["static"]
breathe_default_members = ("members",)
breathe_implementation_filename_extensions = []
suppress_warnings = ["misc.highlighting_failure"]  # of code with `…`
