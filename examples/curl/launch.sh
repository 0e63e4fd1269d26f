#!/usr/bin/env bash
# Launch an app, wait until it runs, optionally ask it something, and tear it down again: with nothing but bash,
# curl and grep, to show that the platform's API is plain HTTP and JSON. It is also what a pipeline can do.
#
#   GPUAAS_URL          the platform, such as https://gpu.example.com
#   GPUAAS_TOKEN        a session token or service-account key
#   GPUAAS_PROJECT      the project's id, prj_…
#   GPUAAS_APP          the app's short name                       (default hello-cluster)
#   GPUAAS_NAME         the instance's name                        (default curl-<process id>)
#   GPUAAS_ALLOCATIONS  ids of allocations, separated by blanks    (default: the first free one that the app fits)
#   GPUAAS_CONFIG       the app's config, JSON                     (default {})
#   GPUAAS_ACTION       an action to ask for once it runs          (default: none)
#   GPUAAS_INPUT        the action's input, JSON                   (default {})
#   GPUAAS_TIMEOUT      seconds to wait for each operation         (default 600)
#
# Ends with 0 when the instance ran and was torn down with proof; with 1 otherwise.
set -euo pipefail

: "${GPUAAS_URL:?set it to the address of the platform}"
: "${GPUAAS_TOKEN:?set it to a session token or service-account key}"
: "${GPUAAS_PROJECT:?set it to the id of a project, prj_…}"
app=${GPUAAS_APP:-hello-cluster}
name=${GPUAAS_NAME:-curl-$$}
timeout=${GPUAAS_TIMEOUT:-600}
config=${GPUAAS_CONFIG:-}
input=${GPUAAS_INPUT:-}
[[ -n $config ]] || config='{}'
[[ -n $input ]] || input='{}'
# A key for each mutation of this run: curl may then repeat a request whose answer was lost, and nothing happens twice.
run=curl-$(date +%s)-$$

fail() { echo "launch.sh: $*" >&2; exit 1; }

# graphql DOCUMENT VARIABLES: the answer's JSON without blanks. The token goes by a file descriptor, so that it shows
# up neither in the list of processes nor in a log.
graphql() {
  local answer
  answer=$(curl --silent --show-error --max-time 60 --retry 5 --retry-connrefused \
    --header @<(printf 'Authorization: Bearer %s\n' "$GPUAAS_TOKEN") \
    --header 'Content-Type: application/json' --header "X-Correlation-ID: $run" \
    --data "{\"query\":\"$1\",\"variables\":$2}" "${GPUAAS_URL%/}/graphql") || fail "no answer from $GPUAAS_URL"
  if grep -q '"errors": *\[ *{' <<<"$answer"; then fail "refused: $answer"; fi
  tr -d '\n' <<<"$answer"
}

# field NAME: the first value of a text or number field in the JSON on standard input.
field() { grep -o "\"$1\": *\(\"[^\"]*\"\|[0-9]*\)" | head -n 1 | sed 's/^[^:]*: *//; s/"//g'; }

# await OPERATION: wait for its end, printing each change; succeeds only if it succeeded.
await() {
  local deadline=$((SECONDS + timeout)) last='' answer state line
  while ((SECONDS < deadline)); do
    answer=$(graphql 'query($id:ID!){operation(id:$id){state percent phase message error{code message}}}' "{\"id\":\"$1\"}") || return 1
    state=$(field state <<<"$answer")
    line="$state $(field percent <<<"$answer")% $(field phase <<<"$answer")"
    [[ $line == "$last" ]] || echo "  $line"
    last=$line
    case $state in
      SUCCEEDED) return 0 ;;
      FAILED | CANCELED) echo "  $answer" >&2; return 1 ;;
    esac
    sleep 1
  done
  echo "  operation $1 has not ended after $timeout s" >&2
  return 1
}

# decommission INSTANCE: tear it down and wait for the proof.
decommission() {
  local answer
  answer=$(graphql 'mutation($input:DecommissionInstanceInput!){decommissionInstance(input:$input){operation{id}}}' \
    "{\"input\":{\"instanceId\":\"$1\",\"reason\":\"end of the example\",\"idempotencyKey\":\"$run-decommission\"}}") || return 1
  echo "decommission: $(field id <<<"$answer")"
  await "$(field id <<<"$answer")"
}

allocations=${GPUAAS_ALLOCATIONS:-}
if [[ -z $allocations ]]; then
  answer=$(graphql 'query($project:ID!,$app:String!){launchOptions(projectId:$project,appSlug:$app){allocations{compatible allocation{id}}}}' \
    "{\"project\":\"$GPUAAS_PROJECT\",\"app\":\"$app\"}")
  allocations=$(tr -d ' ' <<<"$answer" | grep -o '"compatible":true,"allocation":{"id":"alc_[^"]*' | head -n 1 | sed 's/.*"//' || true)
  [[ -n $allocations ]] || fail "no free allocation of the project fits $app: request one, or set GPUAAS_ALLOCATIONS"
fi
ids=$(printf '"%s",' $allocations)

answer=$(graphql 'mutation($input:LaunchInstanceInput!){launchInstance(input:$input){operation{id} instance{id}}}' \
  "{\"input\":{\"projectId\":\"$GPUAAS_PROJECT\",\"appSlug\":\"$app\",\"name\":\"$name\",\"allocationIds\":[${ids%,}],\"config\":$config,\"idempotencyKey\":\"$run-launch\"}}")
operation=$(grep -o 'op_[0-9a-z]*' <<<"$answer" | head -n 1)
instance=$(grep -o 'ins_[0-9a-z]*' <<<"$answer" | head -n 1)
echo "launch: $instance by $operation"

outcome=0
await "$operation" || outcome=1
if ((outcome == 0)) && [[ -n ${GPUAAS_ACTION:-} ]]; then
  graphql 'mutation($input:InvokeActionInput!){invokeAction(input:$input){output}}' \
    "{\"input\":{\"instanceId\":\"$instance\",\"action\":\"$GPUAAS_ACTION\",\"input\":$input,\"idempotencyKey\":\"$run-action\"}}" || outcome=1
  echo
fi
# Torn down also after a failed launch, which keeps what it holds until it is.
decommission "$instance" || outcome=1
exit "$outcome"
