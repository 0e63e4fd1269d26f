#!/bin/sh
# Everything that happens in a member of counter, by its first argument. It needs a POSIX shell.
dir="${GPUAAS_MEMBER_ROOT:-}/srv/counter"
mkdir -p "$dir/batches" "$dir/closed"

step() { sed -n 's/^step //p' "$dir/settings"; }

# count is the counter itself: every second it goes on by its step. The value is written whole or not at all.
count() {
    trap 'rm -f "$dir/running"; exit 0' TERM INT
    cp "$dir/settings" "$dir/running"
    by=$(step)
    value=$(cat "$dir/value" 2> /dev/null || echo 0)
    while :; do
        echo "$value" > "$dir/value.new" && mv "$dir/value.new" "$dir/value"
        sleep 1 &
        wait $!
        value=$((value + by))
    done
}

# fresh forgets the sign of life of an earlier process; up succeeds when it counts with the settings as they are.
fresh() { rm -f "$dir/running"; }
up() { test -f "$dir/value" && cmp -s "$dir/settings" "$dir/running"; }

# total prints what was counted and added.
total() {
    sum=$(cat "$dir/value" 2> /dev/null || echo 0)
    if test -f "$dir/added"; then while read -r n; do sum=$((sum + n)); done < "$dir/added"; fi
    echo "$sum"
}
add() { echo "$1" >> "$dir/added" && total; }

# shut REASON lets no new batch in; reopen REASON takes that reason back, and unbolt all of them.
shut() { : > "$dir/closed/$1"; }
reopen() { rm -f "$dir/closed/$1"; }
unbolt() { rm -f "$dir"/closed/*; }
is_shut() {
    set -- "$dir"/closed/*
    test -e "$1"
}

put() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" > "$dir/batches/.$1" && mv "$dir/batches/.$1" "$dir/batches/$1"; }

# begin SECONDS OWNER begins a batch and prints its id. It is written down before the door is looked at, and shut is
# done before batches are listed: whoever comes second sees the first.
begin() {
    since=$(date +%s)
    id="b$since-$$"
    put "$id" $$ "$since" "$1" "$2"
    if is_shut; then
        rm -f "$dir/batches/$id"
        echo "takes no new batch" >&2
        exit 3
    fi
    sh "$0" batch "$id" "$1" < /dev/null > /dev/null 2>&1 &
    put "$id" $! "$since" "$1" "$2"
    echo "$id"
}

# batch ID SECONDS is a batch, a process of its own: it counts its seconds and adds them up at its end.
batch() {
    sleep "$2" &
    child=$!
    trap 'kill $child; rm -f "$dir/batches/$1"; exit 143' TERM
    wait $child
    echo "$2" >> "$dir/added"
    rm -f "$dir/batches/$1"
}

# list prints the batches that run, a line each; what was killed is struck off.
list() {
    for file in "$dir"/batches/b*; do
        test -f "$file" || continue
        pid=$(cut -f 2 "$file" 2> /dev/null) || continue
        if kill -0 "$pid" 2> /dev/null; then cat "$file" 2> /dev/null; else rm -f "$file"; fi
    done
}

# change COUNT SECONDS lists as soon as not COUNT batches run, and after SECONDS anyway.
change() {
    left=$2
    while :; do
        now=$(list)
        if [ "$(printf '%s' "$now" | grep -c .)" -ne "$1" ] || [ "$left" -le 0 ]; then break; fi
        sleep 1
        left=$((left - 1))
    done
    test -z "$now" || printf '%s\n' "$now"
}

# abort ends all batches and prints what they were.
abort() {
    lost=$(list)
    test -z "$lost" || printf '%s\n' "$lost"
    for pid in $(printf '%s\n' "$lost" | cut -f 2); do kill "$pid" 2> /dev/null; done
    rm -f "$dir"/batches/b*
}

verb=$1
shift
case $verb in
count | fresh | up | total | add | shut | reopen | unbolt | begin | batch | list | change | abort) "$verb" "$@" ;;
*)
    echo "unknown verb $verb" >&2
    exit 2
    ;;
esac
