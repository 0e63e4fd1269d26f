#!/bin/sh
# Everything that happens in a member of hello-cluster, by its first argument. It needs a POSIX shell.
dir="${GPUAAS_MEMBER_ROOT:-}/srv/hello"
mkdir -p "$dir/work" "$dir/closed" "$dir/peers"

# The peer itself: it copies the settings that it runs with and shows every second that it is alive.
peer() {
    trap 'rm -f "$dir/alive" "$dir/running"; exit 0' TERM INT
    cp "$dir/settings" "$dir/running"
    echo "$PEER_NAME is listening"
    while :; do
        date -u +%Y-%m-%dT%H:%M:%SZ > "$dir/alive"
        # In the background, so that a signal is answered at once.
        sleep 1 &
        wait $!
    done
}

# fresh forgets the signs of life of an earlier peer.
fresh() { rm -f "$dir/alive" "$dir/running"; }

# up succeeds when the peer is alive and runs with the settings as they are.
up() { test -f "$dir/alive" && cmp -s "$dir/settings" "$dir/running"; }

# shut REASON lets no new work in; reopen REASON takes that one reason back, and unbolt all of them.
shut() { : > "$dir/closed/$1"; }
reopen() { rm -f "$dir/closed/$1"; }
unbolt() { rm -f "$dir"/closed/*; }
is_shut() {
    set -- "$dir"/closed/*
    test -e "$1"
}

# put ID PID SINCE SECONDS OWNER NAME writes a piece of work down, whole or not at all.
put() {
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$@" > "$dir/work/.$1" && mv "$dir/work/.$1" "$dir/work/$1"
}

# begin SECONDS OWNER NAME begins a piece of work and prints its id. It is written down before the
# door is looked at, and shut is done before work is listed: the later of the two sees the earlier one.
begin() {
    since=$(date +%s)
    id="w$since-$$"
    put "$id" $$ "$since" "$1" "$2" "$3"
    if is_shut; then
        rm -f "$dir/work/$id"
        echo "takes no new work" >&2
        exit 3
    fi
    sh "$0" toil "$id" "$1" < /dev/null > /dev/null 2>&1 &
    put "$id" $! "$since" "$1" "$2" "$3"
    echo "$id"
}

# toil ID SECONDS is the work itself, a process of its own that outlives the peer.
toil() {
    sleep "$2" &
    child=$!
    trap 'kill $child; rm -f "$dir/work/$1"; exit 143' TERM
    wait $child
    rm -f "$dir/work/$1"
    echo "$1" >> "$dir/done"
}

# list prints the work that runs, a line each; what was killed is struck off.
list() {
    for file in "$dir"/work/w*; do
        test -f "$file" || continue
        pid=$(cut -f 2 "$file" 2> /dev/null) || continue
        if kill -0 "$pid" 2> /dev/null; then cat "$file" 2> /dev/null; else rm -f "$file"; fi
    done
}

# change COUNT SECONDS lists as soon as not COUNT pieces of work run, and after SECONDS anyway.
change() {
    left=$2
    while :; do
        now=$(list)
        count=$(printf '%s' "$now" | grep -c .)
        if [ "$count" -ne "$1" ] || [ "$left" -le 0 ]; then break; fi
        sleep 1
        left=$((left - 1))
    done
    test -z "$now" || printf '%s\n' "$now"
}

# abort ends all work and prints what it was.
abort() {
    lost=$(list)
    test -z "$lost" || printf '%s\n' "$lost"
    for pid in $(printf '%s\n' "$lost" | cut -f 2); do kill "$pid" 2> /dev/null; done
    rm -f "$dir"/work/w*
}

# meet and part read the names of other peers, a line "ID NAME ADDRESS" each; roll prints them all.
meet() { while read -r id name address; do echo "$name $address" > "$dir/peers/$id"; done; }
part() { while read -r id rest; do rm -f "$dir/peers/$id"; done; }
anew() { rm -f "$dir"/peers/*; meet; }
roll() { for file in "$dir"/peers/*; do test ! -f "$file" || cat "$file"; done; }

verb=$1
shift
case $verb in
peer | fresh | up | shut | reopen | unbolt | begin | toil | list | change | abort | meet | part | anew | roll) "$verb" "$@" ;;
*)
    echo "unknown verb $verb" >&2
    exit 2
    ;;
esac
