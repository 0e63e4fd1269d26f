package contract

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// How a fetched artifact is placed.
const (
	// AsOCILayout is an OCI image layout in a folder, the default for images.
	AsOCILayout = "oci_layout"
	// AsFiles is the files of its layers by their titles, in a folder: the default for other artifacts.
	AsFiles = "files"
	// AsFile is the one file of a blob, the default for blobs.
	AsFile = "file"
)

// FetchArtifact brings an artifact onto the node, verified byte by byte against its digest, and places it in the
// member's file system. Parts that the node has already are not fetched again, so the same task again is cheap.
type FetchArtifact = nodetask.FetchArtifact

// CloudInit applies cloud-init user data in the member, to its end, as a first boot would: exactly one of UserData
// and UserDataSealed. The same instance id again changes nothing.
type CloudInit struct {
	// UserData is the document, beginning with "#cloud-config" or another form that cloud-init knows; at most 64 KiB.
	UserData string `json:"userData,omitempty"`
	// UserDataSealed is the document as made by [Seal].
	UserDataSealed string `json:"userDataSealed,omitempty"`
	// InstanceID is what cloud-init takes the member for; another one is another first boot.
	InstanceID string `json:"instanceId"`
	// Hostname is the member's own name in its metadata; empty for the node's.
	Hostname string `json:"hostname,omitempty"`
}

// TaskKind returns CLOUD_INIT.
func (CloudInit) TaskKind() TaskKind { return TaskCloudInit }

// Fetched is what a FETCH_ARTIFACT task came to.
type Fetched struct {
	// Digest is the artifact's, and Path where it lies in the member.
	Digest string `json:"digest"`
	Path   string `json:"path"`
	// Manifest is the digest of the manifest that was placed, which of an index is not the artifact's own; empty for a
	// blob.
	Manifest string `json:"manifest,omitempty"`
	// Bytes is how large it is, and FetchedBytes how much of that was not on the node before.
	Bytes        int64 `json:"bytes"`
	FetchedBytes int64 `json:"fetchedBytes"`
	// Parts is how many blobs and manifests were placed.
	Parts int `json:"parts"`
	// Cached says whether the node had all of it.
	Cached bool `json:"cached"`
}

// CloudInitRun is what a CLOUD_INIT task came to, read from what cloud-init itself says of its run.
type CloudInitRun struct {
	// Status is "done" or "error", as cloud-init words it.
	Status string `json:"status"`
	// Errors are what its stages complained of.
	Errors []string `json:"errors"`
	// Stages are those that ran, in their order.
	Stages []string `json:"stages"`
	// Output is the end of what the stages printed.
	Output string `json:"output"`
}

// Fetched reads what a fetch came to; ok is false when it says nothing.
func (r TaskResult) Fetched() (fetched Fetched, ok bool) {
	return fetched, json.Unmarshal(r.Raw, &fetched) == nil && fetched.Digest != ""
}

// CloudInit reads what applying user data came to; ok is false when it says nothing.
func (r TaskResult) CloudInit() (run CloudInitRun, ok bool) {
	return run, json.Unmarshal(r.Raw, &run) == nil && run.Status != ""
}
