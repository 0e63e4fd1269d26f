#!/bin/sh
# Everything that happens in a member of redkeep, by its first argument. It needs a POSIX shell and Redis 6.2 or newer.
# What the shell can do itself is left to it, since a probe comes every few seconds and each program is a start.
dir="${GPUAAS_MEMBER_ROOT:-}/srv/redkeep"
test -d "$dir/closed" && test -d "$dir/data" || mkdir -p "$dir/closed" "$dir/data"

# word NAME FILE sets $word to what follows NAME at the beginning of a line; empty where no line begins so.
word() {
    word=
    while read -r name rest; do
        if test "$name" = "$1"; then word=$rest && return; fi
    done < "$dir/$2"
}
cli() {
    word keeper secret && auth=$word && word bind settings && read -r at < "$dir/port"
    REDISCLI_AUTH=$auth redis-cli -e -h "$word" -p "$at" --user keeper "$@"
}
of() { cli info everything | sed -n "s/^$1:\([^[:cntrl:]]*\).*/\1/p"; }

# port FIRST prints the member's port: the first free one from FIRST on, the same for as long as the member exists.
port() {
    if ! test -s "$dir/port"; then
        n=$1
        word bind settings
        # free is what refuses a connection: something else may listen there, and never answer
        until timeout 2 redis-cli -h "$word" -p "$n" ping 2>&1 | grep -q refused; do n=$((n + 1)); done
        echo "$n" > "$dir/port.new" && mv "$dir/port.new" "$dir/port"
    fi
    cat "$dir/port"
}

is_shut() {
    set -- "$dir"/closed/*
    test -e "$1"
}
door() { if is_shut; then echo off; else echo on; fi; }

# serve is the server itself. Its whole configuration is written anew from what the adapter wrote.
serve() {
    umask 077
    cp "$dir/settings" "$dir/running"
    {
        grep -v '^#' "$dir/settings"
        echo "port $(cat "$dir/port")"
        echo "dir $dir/data"
        printf 'masteruser keeper\nprotected-mode no\nsave ""\nshutdown-timeout 0\nrepl-diskless-sync-delay 0\n'
        sed -n 's/^keeper /masterauth /p' "$dir/secret"
        sed -n 's/^keeper \(.*\)/user keeper on >\1 ~* \&* +@all/p' "$dir/secret"
        sed -n "s/^client \(.*\)/user default $(door) >\1 ~* \&* +@all -@dangerous/p" "$dir/secret"
        if test -s "$dir/leader"; then echo "replicaof $(cat "$dir/leader")"; fi
    } > "$dir/redis.conf"
    exec redis-server "$dir/redis.conf"
}
fresh() { rm -f "$dir/running"; }
up() {
    cmp -s "$dir/settings" "$dir/running" && test "$(cli ping)" = PONG || exit 1
    test ! -s "$dir/leader" || test "$(of master_link_status)" = up
}

# follow HOST PORT makes the member a replica, now where it runs and at its next start; lead makes it the primary.
follow() { echo "$1 $2" > "$dir/leader" && { test ! -f "$dir/running" || cli replicaof "$1" "$2"; }; }
lead() { : > "$dir/leader" && { test ! -f "$dir/running" || cli replicaof no one; }; }

# handover HOST PORT makes that replica the primary without losing a write. Done before, it is a success.
handover() {
    if test "$(of role)" = master; then cli failover to "$1" "$2" timeout 20000; fi
    n=0
    while test "$(of role)" = master || test "$(of master_failover_state)" != no-failover; do
        n=$((n + 1))
        test $n -lt 120 || exit 1
        sleep 0.2
    done
    echo "$1 $2" > "$dir/leader"
}

# state prints what the server is, as words NAME=VALUE.
state() {
    test -f "$dir/running" || exit 1
    cli info everything | sed -n -E 's/^(role|master_link_status|slave_repl_offset|connected_slaves|run_id|'\
'total_commands_processed):([^[:cntrl:]]*).*/\1=\2/p'
    echo "keys=$(cli dbsize)"
    read -r at < "$dir/port" && echo "port=$at"
    echo "runs=$(sed -n 's/^# version //p' "$dir/running")"
}
put() { printf '%s' "$2" | cli -x set "$1"; }

# shut REASON lets no new client in; reopen REASON takes that reason back, unbolt all of them.
apply() { test ! -f "$dir/running" || cli acl setuser default "$(door)"; }
shut() { : > "$dir/closed/$1" && apply; }
reopen() { rm -f "$dir/closed/$1" && apply; }
unbolt() { rm -f "$dir"/closed/* && apply; }

# clients prints the connections of clients, a line each; change COUNT SECONDS does when they are not COUNT any more.
clients() { cli client list | grep -v -e user=keeper -e 'flags=[A-Z]*[SM]' || true; }
change() {
    left=$2
    while now=$(clients) && test "$(printf '%s' "$now" | grep -c .)" -eq "$1" && test "$left" -gt 0; do
        sleep 1
        left=$((left - 1))
    done
    printf '%s\n' "$now"
}
evict() { clients && cli client kill user default > /dev/null; }

verb=$1
shift
case $verb in
port | serve | fresh | up | follow | lead | handover | state | put | shut | reopen | unbolt | clients | change | evict)
    "$verb" "$@"
    ;;
*)
    echo "unknown verb $verb" >&2
    exit 2
    ;;
esac
