#!/usr/bin/env bash
# The page of reports: types, drift of the committed template, its figures, and the page itself in a
# browser. What cannot be checked on this machine is skipped with the reason; users need none of it,
# since the built template is committed.
set -euo pipefail
cd "$(dirname "$0")"

skip() { echo "skipped: $1 (needs $2)"; exit 0; }

command -v node >/dev/null || skip 'the page of reports' 'node 20 or later'
(($(node -p 'process.versions.node.split(".")[0]') >= 20)) || skip 'the page of reports' "node 20 or later, this is $(node --version)"
command -v npm >/dev/null || skip 'the page of reports' 'npm'
if [[ ! -d node_modules ]] && ! npm ci --ignore-scripts --no-audit --no-fund --silent; then
    skip 'the page of reports' 'its packages: npm ci in web/ failed'
fi
npm run --silent check
npm run --silent drift
npm test --silent
command -v chromium >/dev/null || skip 'the page in a browser' 'chromium'
npm run --silent test:page
