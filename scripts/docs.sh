#!/bin/bash
# Builds the site of docs and of the public headers in build/site, without a network. Its start is build/site/index.html;
# search works without a server. A warning of Sphinx is an error, one of Doxygen is not. usage: docs.sh
set -euo pipefail
cd "$(dirname "$0")/.."
missing=()
for package in doxygen furo python3-breathe python3-myst-parser python3-sphinx sphinx-common; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] || bash scripts/setup.sh "${missing[@]}"

site=build/site
work=build/site-work
mkdir -p "$work"
doxygen - <<END
INPUT = include/xtape
RECURSIVE = YES
OUTPUT_DIRECTORY = $work
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
INPUT_FILTER = "sed -E -f docs/site/as_doxygen_reads.sed"
EXTRACT_ALL = YES
EXTRACT_LOCAL_CLASSES = NO
EXCLUDE_SYMBOLS = *detail* 
JAVADOC_AUTOBRIEF = YES
MARKDOWN_SUPPORT = YES
AUTOLINK_SUPPORT = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
END
# -a: all pages have the navigation, so all are written.
XTAPE_DOXYGEN="$PWD/$work/xml" /usr/bin/sphinx-build -a -W --keep-going -q -c docs/site -b html -d "$work/doctrees" docs "$site"
echo "$site/index.html"
