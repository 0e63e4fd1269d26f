#!/usr/bin/env bash
# Plays an outsider, in one language: an adapter that the platform has never seen, from its skeleton to an app that runs in its
# publisher's own project, and back to nothing. No operator does anything. README.md says what it needs.
set -euo pipefail

lang=${1:?language: go, python or typescript}
: "${APPCTL_SERVER:?the platform}" "${APPCTL_TOKEN:?key of a service account}" "${APPCTL_PROJECT:?the publishing project}"
: "${APPCTL_SIGNING_KEY:?private key, PEM}" "${REGISTRY:?where artifacts go, such as registry.example.com/team}"
NAME=${NAME:-demo-$lang-beat}          # begins with the tenant's short name and a hyphen
ADDRESS=${ADDRESS:-127.0.0.1:9100}     # where the adapter listens
URL=${URL:-http://$ADDRESS}            # where the platform reaches it
PYTHON=${PYTHON:-python3}
read -r -a registry <<<"${REGISTRY_FLAGS:-}" # such as --plain-http
read -r -a check <<<"${CHECK_FLAGS:-}"       # such as --settle 300ms
read -r -a rented <<<"${SMOKE_FLAGS:-}"      # such as --shape baremetal
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
folder=$work/$NAME
running=
finish() {
  if [[ -n $running ]]; then kill "$running" 2>/dev/null && wait "$running" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT
step() { printf '== %4d s  %s\n' "$SECONDS" "$*" >&2; }

step "init: a skeleton in $lang"
sdk=()
if [[ $lang == go && -n ${SDK:-} ]]; then sdk=(--sdk "$SDK"); fi # the SDK's sources, until a module proxy has them
appctl adapter init --lang "$lang" --dir "$folder" "${sdk[@]}" "$NAME" --quiet >/dev/null

case $lang in
  go) program="exec $folder/adapter" content=(adapter) ;;
  python) program="exec $PYTHON $folder/adapter.py" content=(adapter.py gpuaas_adapter) ;;
  typescript)
    program="exec node $folder/dist/src/main.js" content=(dist package.json)
    (cd "$folder" && npm ci --no-audit --no-fund --silent) >&2 ;;
esac
build() {
  case $lang in
    go) (cd "$folder" && gofmt -w main.go && go build -mod=mod -o adapter .) ;;
    typescript) (cd "$folder" && npm run --silent build) ;;
  esac
}
build >&2
start="$program "'--platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"'

step "dev: a launch during which the adapter is killed, and what is left is taken down"
appctl adapter dev --name "$NAME" --manifest "$folder/manifest.json" --start "$start" --scenario "$here/dev.txt" >&2

step "change: members drain, instances are upgraded"
"$PYTHON" "$here/change.py" "$lang" "$folder"
build >&2
case $lang in
  go) (cd "$folder" && go test -mod=mod -vet=off ./...) >&2 ;;
  python) (cd "$folder" && "$PYTHON" -m unittest -q) >&2 ;;
  typescript) (cd "$folder" && npm test --silent) >&2 ;;
esac

step "check: the whole contract, and the tenancy report"
appctl adapter check --name "$NAME" --start "$start" --json "$work/conformance.json" --quiet "${check[@]}" >&2
appctl adapter check --name "$NAME" --start "$start" --json "$work/tenancy.json" --only tenancy --quiet "${check[@]}" >&2

step "push and sign"
tar -C "$folder" --sort=name --mtime=@0 --owner=0 --group=0 -cf "$work/$NAME.tar" manifest.json "${content[@]}"
ref=$(appctl artifact push --file "$work/$NAME.tar" --artifact-type application/vnd.gpuaas.controller.v1 \
  "$REGISTRY/$NAME:0.1.0" --quiet "${registry[@]}")
appctl artifact sign "$ref" --quiet "${registry[@]}" >/dev/null

step "run the adapter, and put it and the app into the project's sandbox"
sh -c "$program"' --platform-url "$1" --name "$2" --listen "$3" --state-dir "$4"' - \
  "$APPCTL_SERVER" "$NAME" "$ADDRESS" "$work/state" >"$work/adapter.log" 2>&1 &
running=$!
for ((i = 0; i < 100; i++)); do # it listens when the connection is taken
  if (exec 3<>"/dev/tcp/${ADDRESS%:*}/${ADDRESS##*:}") 2>/dev/null; then break; fi
  sleep 0.1
done
appctl apps create "$NAME" --summary "Members that say that they are alive" --quiet >/dev/null
appctl adapter register "$NAME" "$URL" --quiet >/dev/null

step "publish"
artifact=$(appctl artifact publish "$ref" --name "$NAME" --quiet)
promoted() { for to in "$@"; do appctl promote artifact "$artifact" --to "$to" --reason "first version" --quiet >/dev/null; done; }
promoted staged canary active
# release publishes a version, proves it and makes it ACTIVE.
release() {
  local manifest instance kind to
  sed -e "s|\"version\": \"0.1.0\"|\"version\": \"$1\"|" -e "s|\"ref\": \"\"|\"ref\": \"$ref\"|" \
    -e "s|\"digest\": \"\"|\"digest\": \"${ref##*@}\"|" "$folder/manifest.json" >"$work/manifest.json"
  manifest=$(appctl manifest publish "$work/manifest.json" --quiet)
  instance=$(appctl manifest smoke "$manifest" --quiet "${rented[@]}")
  for kind in conformance tenancy; do
    appctl evidence submit "$manifest" "$work/$kind.json" --kind "$kind" --quiet >/dev/null
  done
  appctl promote manifest "$manifest" --to staged --smoke-instance "$instance" --reason "smoke ran" --quiet >/dev/null
  for to in canary active; do appctl promote manifest "$manifest" --to "$to" --reason "tried" --quiet >/dev/null; done
}
release 0.1.0

step "launch"
allocation=$(appctl allocations request --name "$NAME" --quiet "${rented[@]}")
instance=$(appctl launch "$NAME" --name "$NAME" --allocation "$allocation" --component worker=2 --wait --quiet)

step "drain a member, and bring it back"
appctl members drain "$NAME/worker/0" --yes --wait --quiet >/dev/null
appctl members uncordon "$NAME/worker/0" --wait --quiet >/dev/null

step "upgrade"
release 0.2.0
appctl instances upgrade "$instance" --version 0.2.0 --yes --wait --quiet >/dev/null
appctl action run "$NAME" "$NAME.read" -o json | grep -q -- '-0.2.0' # the members' own word

step "retire"
appctl promote manifest "$NAME@0.1.0" --to retired --reason "replaced" --quiet >/dev/null
appctl decommission "$instance" --reason "tried" --wait --quiet >/dev/null
appctl allocations release "$allocation" --wait --quiet >/dev/null
step "done"
echo "$instance"
