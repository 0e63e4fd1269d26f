#!/bin/sh
# What a member of a launched image does on its node. Everything lies below /srv/oci of the member; a release is one
# image with one setting, and its container has the release's name. Verbs:
#   ports NAME=PORT ...     choose a free port of the node for each, once, and print them
#   prepare RELEASE         make the release's container from the image layout, after its digest
#   run RELEASE             run the container in the foreground; TERM stops it as its image wants to be stopped
#   ready [RELEASE]         succeed when the release, else the one in use, is well
#   use RELEASE             remember the release in use
#   started                 print how the release in use was started
#   facts RELEASE           print what is so of the release on this node, as NAME=VALUE lines
#   usage                   print when the container in use started, the time now, and what it has counted since
#   logs LINES              print the end of what the release in use has written
#   keep RELEASE            delete every other release
#   clean                   stop and delete every container, and the limits they had
set -eu
top="${GPUAAS_MEMBER_ROOT:-}/srv/oci"
limits=/sys/fs/cgroup
volatile="${GPUAAS_MEMBER_ROOT:-}/run/oci"
group="gpuaas-${GPUAAS_MEMBER_ID:-$(hostname)}"

fail() { echo "oci: $*" >&2; exit 1; }

# busy says whether something on the node listens on a port.
busy() {
	hex=$(printf ':%04X' "$1")
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v end="$hex" '$4 == "0A" && substr($2, length($2) - 4) == end { found = 1 } END { exit !found }'
}

# ports keeps a choice once it is made. START is how far from the wanted port to begin, so that members which choose at
# the same moment do not choose the same; at most 64 are tried for each.
ports() {
	mkdir -p "$top"
	touch "$top/ports"
	for want in "$@"; do
		name=${want%%=*} port=$((${want#*=} + ${START:-0})) tries=0
		if grep -q "^$name=" "$top/ports"; then
			continue
		fi
		while busy "$port" && [ "$tries" -lt 64 ]; do
			port=$((port + 16)) tries=$((tries + 1))
		done
		if [ "$port" -gt 65535 ] || [ "$tries" -ge 64 ]; then
			fail "no free port for $name"
		fi
		echo "$name=$port" >> "$top/ports"
	done
	cat "$top/ports"
}

# enforce mounts the controllers by which limits are enforced, in the member's own mount namespace. Where that is not
# possible containers run without limits, and facts says so.
enforce() {
	if [ -e "$volatile/limits" ]; then
		return
	fi
	mkdir -p "$volatile"
	how=none
	if [ -z "${GPUAAS_MEMBER_ROOT:-}" ] && mount -t tmpfs -o mode=755 cgroup "$limits" 2>/dev/null; then
		while IFS=: read -r _ names _; do
			case "$names" in '' | name=*) continue ;; esac
			mkdir -p "$limits/$names"
			if ! mount -t cgroup -o "$names" cgroup "$limits/$names" 2>/dev/null; then
				rmdir "$limits/$names"
				continue
			fi
			for one in $(echo "$names" | tr , ' '); do
				[ -e "$limits/$one" ] || ln -s "$names" "$limits/$one"
			done
		done < /proc/self/cgroup
		if [ -e "$limits/memory/memory.limit_in_bytes" ] && mkdir -p "$limits/memory/$group" 2>/dev/null; then
			how=cgroup-v1
		fi
	fi
	echo "$how" > "$volatile/limits"
}

accelerators() {
	for device in /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm /dev/kfd /dev/dri/renderD*; do
		if [ -c "$device" ]; then
			echo "$device"
		fi
	done
}

prepare() {
	release=$1 at="$top/releases/$1"
	. "$at/image"
	enforce
	podman rm --force --ignore --time 10 "$release" > /dev/null
	podman pull --quiet "oci:$layout" > "$at/id" || fail "the image cannot be read"
	found=$(podman image inspect --format '{{.Digest}} {{range .RepoDigests}}{{.}} {{end}}' "$(cat "$at/id")")
	case "$found" in
	*"$digest"*) ;;
	*) fail "the image is not $digest but $found" ;;
	esac
	rm -rf "$layout"
	accelerators > "$at/devices"
	. "$at/create"
	rm -rf "$at/create"
}

# give makes a new volume's folder the image's user's. One that holds files, or that somebody has, stays as it is.
give() {
	[ "$(stat -c %u "$1")" = 0 ] && [ -z "$(ls -A "$1")" ] || return 0
	image=$(cat "$at/id")
	user=$(podman image inspect --format '{{.User}}' "$image")
	user=${user%%:*}
	case "$user" in
	*[!0-9]*)
		files=$(podman image mount "$image")
		uid=$(awk -F: -v name="$user" '$1 == name { print $3; exit }' "$files/etc/passwd") || fail "the image has no users"
		podman image unmount "$image" > /dev/null
		user=${uid:?oci: the image has no user $user}
		;;
	esac
	chown -- "${user:-0}" "$1"
}

# create makes the container; a release's create file calls it with the arguments of its own.
create() {
	bounds="--cgroups=disabled"
	if [ "$(cat "$volatile/limits")" != none ]; then
		bounds="--cgroups=enabled --cgroupns=host --cgroup-parent=/$group $limited"
	fi
	devices=""
	if [ "$gpus" -gt 0 ]; then
		devices=$(sed 's/^/--device=/' "$at/devices")
	fi
	# shellcheck disable=SC2086 # both are lists of words without spaces
	podman create --name "$release" --pull=never --network=host --log-driver=k8s-file --log-opt=max-size=8mb \
		--security-opt=no-new-privileges --env-file="$at/env" $bounds $devices "$@" > /dev/null
	rm -f "$at/env"
}

run() {
	release=$1
	. "$top/releases/$release/image"
	trap 'podman stop --time "$grace" "$release" > /dev/null 2>&1; exit 0' TERM INT
	podman start --attach --sig-proxy=false "$release" &
	wait $!
}

current() { cat "$top/current" 2> /dev/null || fail "nothing was ever started"; }

state() { podman container inspect --format '{{.State.Status}}' "$1" 2> /dev/null || echo absent; }

ready() {
	release=${1:-$(current)}
	[ "$(state "$release")" = running ] || fail "the container is $(state "$release")"
	. "$top/releases/$release/ready"
}

facts() {
	echo "limits=$(cat "$volatile/limits" 2> /dev/null || echo none)"
	echo "devices=$(grep -c . "$top/releases/$1/devices" 2> /dev/null || true)"
	echo "state=$(state "$1")"
}

# usage prints nothing where nothing is counted or runs. A container that starts meanwhile counts from zero again: then it fails.
usage() {
	release=$(current)
	at="$top/releases/$release"
	[ -e "$at/usage" ] && [ "$(state "$release")" = running ] || return 0
	began=$(started_at "$release")
	counted=$(. "$at/usage") || exit 1
	[ "$(started_at "$release")" = "$began" ] || fail "the container was started again meanwhile"
	printf 'started %s now %s\n%s\n' "$began" "$(date +%s)" "$counted"
}

started_at() { podman container inspect --format '{{.State.StartedAt.UnixNano}}' "$1"; }

keep() {
	for other in "$top"/releases/*; do
		if [ "$(basename "$other")" != "$1" ]; then
			podman rm --force --ignore --time 10 "$(basename "$other")" > /dev/null
			rm -rf "$other"
		fi
	done
	podman image prune --all --force > /dev/null
	for held in "$top"/artifacts/*; do
		grep -qxF "$(basename "$held")" "$top/releases/$1/artifacts" || rm -rf "$held"
	done
}

clean() {
	podman rm --all --force --time 10 > /dev/null 2>&1 || true
	# The kernel keeps a group busy for a moment after the end of its last process: for at most 5 s it is tried again.
	tries=0
	while [ -n "$(find "$limits" -mindepth 2 -maxdepth 2 -name "$group")" ] && [ "$tries" -lt 50 ]; do
		find "$limits"/*/"$group" -depth -type d -exec rmdir {} \; 2> /dev/null || sleep 0.1
		tries=$((tries + 1))
	done
}

verb=$1
shift
case "$verb" in
ports | prepare | run | ready | facts | usage | keep | clean) "$verb" "$@" ;;
use) echo "$1" > "$top/current.new" && mv "$top/current.new" "$top/current" ;;
started) cat "$top/releases/$(current)/start.json" ;;
logs) podman logs --tail "$1" --timestamps "$(current)" 2>&1 ;;
*) fail "no verb $verb" ;;
esac
