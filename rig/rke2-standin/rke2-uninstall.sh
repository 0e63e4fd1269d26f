#!/bin/sh
# The stand-in's rke2-uninstall.sh: ends everything and deletes it, the programs too where this node may delete them.
set -e
DATA="${RKE2_DATA_DIR:-/var/lib/rancher/rke2}"
[ "$(id -u)" = 0 ] || { echo "rke2-uninstall.sh: it needs root" >&2; exit 1; }
here="$(dirname "$0")"
"$here/rke2-killall.sh"
rm -rf /etc/rancher/rke2 /etc/rancher/node /etc/cni "$DATA"
rm -f "$here/rke2" "$here/rke2-killall.sh" "$here/rke2-uninstall.sh" 2> /dev/null || true
