#!/usr/bin/env bash
# Publishes a version of an app from CI, as a service account: build, push, sign, publish, lint, smoke test, canary, active.
# Run again after it was cut short, it goes on where it stopped. README.md says what it needs.
set -euo pipefail

: "${APP:?the app, by its slug}" "${VERSION:?the version, such as 1.2.0}" "${PROGRAM:?the static program}"
: "${REPOSITORY:?where it goes, such as registry.example.com/team/server}" "${MANIFEST:?the manifest, a template}"
: "${APPCTL_SERVER:?the platform}" "${APPCTL_TOKEN:?key of a service account}" "${APPCTL_PROJECT:?the publishing project}"
: "${APPCTL_SIGNING_KEY:?private key, PEM}"
PLATFORM=${PLATFORM:-linux/amd64} PERCENT=${PERCENT:-20} CANARY_SECONDS=${CANARY_SECONDS:-600} POLL_SECONDS=${POLL_SECONDS:-10}
REASON=${REASON:-"released by CI"}
read -r -a registry <<<"${REGISTRY_FLAGS:-}" # such as --plain-http
read -r -a build <<<"${BUILD_FLAGS:-}"       # such as --user 65532:65532 --env PORT=8080
read -r -a smoke <<<"${SMOKE_FLAGS:-}"       # such as --gpus 2 --component worker=2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { echo "== $*" >&2; }

say "build and push $REPOSITORY:$VERSION"
digest=$(appctl artifact build "$work/image" --file "$PROGRAM" --platform "$PLATFORM" --quiet "${build[@]}")
ref=$(appctl artifact push "$work/image" "$REPOSITORY:$VERSION" --quiet "${registry[@]}")
[[ $ref == *"@$digest" ]]

say "sign $ref"
appctl artifact sign "$ref" --quiet "${registry[@]}" >/dev/null

say "publish the artifact"
# One key for each app, address and content: the same bytes for another app are another publication.
sum=$(printf '%s\n' "$APP" "$ref" | { sha256sum 2>/dev/null || shasum -a 256; })
taken=0
artifact=$(appctl artifact publish "$ref" --name "$APP" --idempotency-key "ci-${sum:0:40}" --quiet 2>"$work/refused") || taken=$?
if ((taken)); then
  # Exit code 5 with CONFLICT: the tenant has these bytes already, for another app or at another address. Then that artifact is
  # pinned, by the reference that it was published with.
  if ((taken != 5)) || ! grep -q CONFLICT "$work/refused"; then cat "$work/refused" >&2; exit "$taken"; fi
  for id in $(appctl artifact list --search "$digest" --quiet); do
    appctl artifact show "$id" -o json >"$work/known.json"
    grep -q '^  "tenantId": "' "$work/known.json" || continue # the platform's
    artifact=$id ref=$(sed -n 's/^  "ref": "\(.*\)",\{0,1\}$/\1/p' "$work/known.json")
    break
  done
  [[ -n $artifact ]] || { cat "$work/refused" >&2; exit "$taken"; }
  say "these bytes are published already: $artifact, $ref"
fi
# The same bytes may have come further in an earlier run.
artifact_is() { appctl artifact list --search "$digest" --stage "$1" --quiet | grep -qx "$artifact"; }
step_artifact() {
  if artifact_is "$1"; then appctl promote artifact "$artifact" --to "$2" --reason "$REASON" --quiet >/dev/null; fi
}
step_artifact draft staged

say "lint and publish the manifest"
sed -e "s|@VERSION@|$VERSION|g" -e "s|@REF@|$ref|g" -e "s|@DIGEST@|$digest|g" "$MANIFEST" >"$work/manifest.json"
appctl manifest lint "$work/manifest.json" >&2
manifest=$(appctl manifest publish "$work/manifest.json" --idempotency-key "ci-$APP-$VERSION-${digest:7:20}" --quiet)
is() { appctl manifest list --app "$APP" --stage "$1" --quiet | grep -qx "$manifest"; }
promote() { appctl promote manifest "$manifest" --to "$1" --reason "$REASON" --quiet "${@:2}" >/dev/null; }

if is draft; then
  say "smoke test"
  instance=$(appctl manifest smoke "$manifest" --quiet "${smoke[@]}")
  for report in ${REPORTS:-}; do # kind=file, such as conformance=report.json; file.sig is a registered runner's signature of it
    signed=()
    if [[ -f ${report#*=}.sig ]]; then signed=(--signature "${report#*=}.sig"); fi
    appctl evidence submit "$manifest" "${report#*=}" --kind "${report%%=*}" --quiet "${signed[@]}" >/dev/null
  done
  promote staged --smoke-instance "$instance"
fi

# The app's terms may ask for a smoke of the artifact that a registered runner has signed: a runner's job runs
# appctl artifact smoke "$artifact" --key …, and this one, refused until then, goes on when it is run again.
step_artifact staged canary
if is staged; then
  say "canary, $PERCENT % of the projects"
  promote canary --percent "$PERCENT"
fi

if is canary; then
  deadline=$((SECONDS + CANARY_SECONDS))
  while :; do
    verdict=$(appctl canary report "$manifest" --quiet)
    case $verdict in
      WORSE) say "the canary fails more often than what it is to replace"; appctl canary report "$manifest" >&2; exit 1 ;;
      NO_WORSE) break ;;
    esac
    # Too few launches to tell: time is up, and nothing has gone wrong.
    ((SECONDS < deadline)) || break
    sleep "$POLL_SECONDS"
  done
  step_artifact canary active
  # The app's terms (launches, time, who) are the platform's to hold: refused, it says what is missing, and a later run goes on here.
  say "active, after a canary that is $verdict"
  promote active
fi
echo "$manifest"
