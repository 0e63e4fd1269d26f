package machine

import (
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// imagePath is where an image lies on a node until containerd has it.
func imagePath(digest string) string {
	return DataPath + "/agent/brought/" + strings.TrimPrefix(digest, "sha256:")
}

// FetchImage brings an image of the platform's onto a node: its agent fetches it with a credential of minutes.
func FetchImage(digest string) adapter.FetchArtifact {
	return adapter.FetchArtifact{Digest: digest, Path: imagePath(digest), As: adapter.AsOCILayout}
}

// ImportImage gives containerd of a node the image that was brought, under the name that pods call it by. Where RKE2
// never ran it exits with 69.
func ImportImage(digest, name string) adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(`c="$R`+DataPath+`/bin/ctr"; test -x "$c" || exit 69; d="$R$1"; `+
		`tar -C "$d" -cf - . | "$c" -a /run/k3s/containerd/containerd.sock -n k8s.io images import --local `+
		`--index-name "$2" - && rm -rf "$d"`, imagePath(digest), name)}
}
