# One peer of hello-cluster: a process that shows every second that it is alive.
trap 'rm -f "$dir/alive"; exit 0' TERM INT
dir="${GPUAAS_MEMBER_ROOT:-}/srv/hello"
mkdir -p "$dir"
echo "$PEER_NAME is listening"
while :; do
    date -u +%Y-%m-%dT%H:%M:%SZ > "$dir/alive"
    # In the background, so that a signal is answered at once.
    sleep 1 &
    wait $!
done
