#!/bin/sh
# The stand-in's rke2-killall.sh: ends everything that RKE2 runs on this node, its pods with it, and takes down their mounts
# and networks. Data stay where they are.
DATA="${RKE2_DATA_DIR:-/var/lib/rancher/rke2}"
state=/run/k3s/containerd

each() { # each PATTERN: the processes whose command line has it, without this script
	for dir in /proc/[0-9]*; do
		pid="${dir#/proc/}"
		[ "$pid" != "$$" ] && tr '\0' ' ' < "$dir/cmdline" 2> /dev/null | grep -Eq -- "$1" && echo "$pid"
	done
}

below() { # below PID…: the processes with all that descend from them
	for pid in "$@"; do
		echo "$pid"
		for task in /proc/"$pid"/task/*/children; do
			below $(cat "$task" 2> /dev/null)
		done
	done
}

rm -f "$DATA"/agent/pod-manifests/*.yaml
kill -9 $(each "^[^ ]*rke2 (server|agent) ") 2> /dev/null
kill -9 $(each "^(kubelet --config=|containerd -c )") 2> /dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do
	shims=$(each "containerd-shim-runc-v2 .*-address $state/containerd.sock")
	[ -n "$shims" ] || break
	kill -9 $(below $shims) 2> /dev/null
	sleep 0.2
done

for try in 1 2 3; do # a mount may lie on another
	awk '{print $2}' /proc/self/mounts | grep -E "^(/run/k3s|/var/lib/kubelet/|/run/netns/cni-|/var/run/netns/cni-)" | sort -r |
		while read -r at; do umount -f "$at" 2> /dev/null || umount -l "$at"; done
done
rm -rf /run/k3s /run/netns/cni-* /var/lib/cni /etc/cni/net.d/10-rke2-standin.conflist
ip link show cni0 > /dev/null 2>&1 && ip link delete cni0
ip route flush proto 88 2> /dev/null
rm -rf /var/lib/kubelet /var/log/pods /var/log/containers
find /sys/fs/cgroup -depth -type d -path '*/k8s.io*' -exec rmdir {} \; 2> /dev/null
exit 0
