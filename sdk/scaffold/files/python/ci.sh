#!/bin/sh
# The recipe for CI: the adapter's own tests, and the whole contract. PYTHON needs PyNaCl and jsonschema.
set -eu
cd "$(dirname "$0")"
python=${PYTHON:-python3}
"$python" -m unittest
"${APPCTL:-appctl}" adapter check --name __NAME__ --json conformance.json "$@" --start \
    "exec $python adapter.py"' --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"'
