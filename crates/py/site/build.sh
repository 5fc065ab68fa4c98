#!/usr/bin/env bash
# The documentation site, into target/site: pages of docs/, and those made from code and notebooks.
set -euo pipefail
cd "$(dirname "$0")/.."

what='the site'
source ./build.sh 'material mkdocstrings nbclient ipykernel matplotlib'
# What the theme says of its next version is nothing to a reader of this output.
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --quiet --config-file site/mkdocs.yml --site-dir "$target/site"
echo "$target/site/index.html"
