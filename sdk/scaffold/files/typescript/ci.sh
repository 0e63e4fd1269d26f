#!/bin/sh
# The recipe for CI: build, the adapter's own tests, and the whole contract.
set -eu
cd "$(dirname "$0")"
npm ci --no-audit --no-fund
npm run build
npm test
"${APPCTL:-appctl}" adapter check --name __NAME__ --json conformance.json "$@" --start \
    'exec node dist/src/main.js --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"'
