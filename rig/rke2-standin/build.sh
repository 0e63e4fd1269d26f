#!/usr/bin/env bash
# Builds the stand-in of RKE2 with all that it runs into a folder: build.sh FOLDER. What is built is named by VERSION and by
# what this folder holds; a folder that has it already is left alone.
set -euo pipefail
into=$1
cd "$(dirname "$0")"
KUBERNETES=v1.36.3
RELEASE=$KUBERNETES+rke2r1 # as RKE2's own builds say it, the kubelet's too
NEXT=$KUBERNETES+rke2r2    # the release after it, of the same Kubernetes: what upgrades lead to
CONTAINERD=v2.4.2
PLUGINS=v1.9.1
export CGO_ENABLED=0 GOFLAGS=-trimpath
have="$KUBERNETES $CONTAINERD $PLUGINS $(cat go.mod ./*.sh ./*/*.go | sha256sum | cut -c1-16)"
if [ "$(cat "$into/built" 2> /dev/null)" = "$have" ]; then exit 0; fi
mkdir -p "$into"/bin "$into"/libexec/cni "$into"/libexec/images
rm -f "$into/built"
echo "building Kubernetes $KUBERNETES and etcd; the first time takes some 6 to 10 minutes on two processors"
go build -buildvcs=false -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$RELEASE" -o "$into/libexec/kube" ./kube
go build -buildvcs=false -ldflags="-s -w -X main.version=$RELEASE" -o "$into/bin/rke2" ./rke2
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -buildvcs=false -ldflags='-s -w' -o "$tools/" ./pause ./web ./plugin ./image
"$tools/image" docker.io/rancher/rke2-standin-pause:1 "$into/libexec/images/pause.tar" "$tools/pause"
"$tools/image" docker.io/rancher/rke2-standin-core:1 "$into/libexec/images/core.tar"
"$tools/image" docker.io/rancher/rke2-standin-web:1 "$into/libexec/images/web.tar" "$tools/web"
"$tools/image" docker.io/rancher/rke2-standin-device-plugin:1 "$into/libexec/images/plugin.tar" "$tools/plugin"
echo "building containerd $CONTAINERD and the network plugins $PLUGINS"
for program in containerd containerd-shim-runc-v2 ctr; do
	GOBIN=$(realpath "$into/libexec") go install -ldflags='-s -w' "github.com/containerd/containerd/v2/cmd/$program@$CONTAINERD"
done
for plugin in main/bridge main/loopback ipam/host-local; do
	GOBIN=$(realpath "$into/libexec/cni") go install -ldflags='-s -w' "github.com/containernetworking/plugins/plugins/$plugin@$PLUGINS"
done
cp rke2-killall.sh rke2-uninstall.sh "$into/bin/"
mkdir -p "$into/releases/$NEXT/bin"
go build -buildvcs=false -ldflags="-s -w -X main.version=$NEXT" -o "$into/releases/$NEXT/bin/rke2" ./rke2
cp rke2-killall.sh rke2-uninstall.sh "$into/releases/$NEXT/bin/"
ln -sfn ../../libexec "$into/releases/$NEXT/libexec"
echo "$have" > "$into/built"
