#!/bin/sh
# Stops the shared test server when it has been idle. Started by package pgtest as: watchdog.sh DIR GRACE
# DIR/users.lock is held (shared) by every test process, DIR/watchdog.lock by this script.
dir=$1 grace=$2
exec 8>>"$dir/watchdog.lock" 9>>"$dir/users.lock"
flock -n -x 8 || exit 0
while :; do
	flock -x 9 # waits until no test process is left
	flock -u 9
	sleep "$grace" # the next package's tests may be compiling
	flock -n -x 9 || continue
	# Holding users.lock keeps new test processes waiting until the files are gone.
	# Ask the pid file now: the server may have been started anew since this script began.
	read -r pid <"$dir/data/postmaster.pid" || pid=0
	[ "$pid" -gt 0 ] && kill -INT "$pid"
	tries=0
	while [ -d "/proc/$pid" ] && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null && [ $tries -lt 300 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	[ -d "/proc/$pid" ] && kill -QUIT "$pid"
	rm -rf "$dir/data" "$dir/data.lock" "$dir/data.log" "$dir/s"
	exit 0
done
