#!/usr/bin/env bash
# The documentation site, into target/site: pages of docs/, and those made from code and notebooks.
set -euo pipefail
cd "$(dirname "$0")/.."

what='the site'
source ./build.sh 'material mkdocstrings nbclient ipykernel matplotlib'
"$python" -m mkdocs build --quiet --config-file site/mkdocs.yml
echo "$target/site/index.html"
