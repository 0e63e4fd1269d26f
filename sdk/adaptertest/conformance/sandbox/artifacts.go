package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Artifacts are artifacts in memory, for nodes whose adapters fetch: everything by its own digest,
// as in a registry. The zero value has none. Safe for concurrent use.
type Artifacts struct {
	mu      sync.Mutex
	content map[string][]byte
	fetched map[string]bool
}

// Put adds bytes, of a manifest, of what a manifest lists or of a file, and returns their digest.
func (a *Artifacts) Put(data []byte) (digest string) {
	sum := sha256.Sum256(data)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.content == nil {
		a.content, a.fetched = map[string][]byte{}, map[string]bool{}
	}
	a.content[digest] = data
	return digest
}

// File is one file of a fetched artifact.
type File struct {
	// Name is its path below that of the task, with slashes; empty for the path itself.
	Name string
	// Data is its content.
	Data []byte
}

// descriptor is an entry in a manifest's list.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Variant      string `json:"variant,omitempty"`
	} `json:"platform,omitempty"`
}

// document is a manifest, or an index of manifests; a file is neither.
type document struct {
	MediaType string       `json:"mediaType"`
	Config    *descriptor  `json:"config"`
	Layers    []descriptor `json:"layers"`
	Manifests []descriptor `json:"manifests"`
}

// titled is the annotation by which a manifest names a layer's file.
const titled = "org.opencontainers.image.title"

// Fetch returns what a node would place for the task: its files, and the report of them.
func (a *Artifacts) Fetch(spec adapter.FetchArtifact) ([]File, adapter.Fetched, error) {
	out := adapter.Fetched{Digest: spec.Digest, Path: spec.Path}
	a.mu.Lock()
	defer a.mu.Unlock()
	data, ok := a.content[spec.Digest]
	if !ok {
		return nil, out, failf("ARTIFACT_UNAVAILABLE", "artifact %s does not exist", spec.Digest)
	}
	out.Cached = a.fetched[spec.Digest]
	found, top, err := a.manifest(spec, data)
	if err != nil {
		return nil, out, err
	}
	as := spec.As
	if as == "" {
		as = found.usual()
	}
	if found != nil {
		out.Manifest = top.Digest
	}
	var files []File
	switch {
	case as == adapter.AsFile && found == nil:
		files = []File{{Data: data}}
	case as == adapter.AsFile && len(found.Layers) == 1:
		files = []File{{Data: a.content[found.Layers[0].Digest]}}
	case as == adapter.AsFiles && found != nil:
		files, err = a.titledFiles(found)
	case as == adapter.AsOCILayout && found != nil:
		files, err = a.layout(found, top)
	default:
		err = failf("SPEC_INVALID", "the artifact cannot be placed as %s", as)
	}
	for _, file := range files {
		out.Bytes += int64(len(file.Data))
	}
	if out.Parts = len(files); !out.Cached {
		out.FetchedBytes = out.Bytes
	}
	a.fetched[spec.Digest] = a.fetched[spec.Digest] || err == nil
	return files, out, err
}

// usual returns the layout of an artifact when the task names none.
func (d *document) usual() string {
	switch {
	case d == nil:
		return adapter.AsFile
	case d.Config != nil && strings.Contains(d.Config.MediaType, "image"):
		return adapter.AsOCILayout
	}
	return adapter.AsFiles
}

// manifest returns the artifact's manifest, of an index that of the platform, with its descriptor;
// nil for a file.
func (a *Artifacts) manifest(spec adapter.FetchArtifact, data []byte) (*document, descriptor, error) {
	top := descriptor{Digest: spec.Digest, Size: int64(len(data))}
	wanted := spec.Platform
	if wanted == "" {
		wanted = "linux/" + runtime.GOARCH
	}
	for range 2 {
		var found document
		if json.Unmarshal(data, &found) != nil || found.Config == nil && found.Layers == nil && found.Manifests == nil {
			return nil, top, nil
		}
		top.MediaType = found.MediaType
		if found.Manifests == nil {
			return &found, top, nil
		}
		below, ok := choose(found.Manifests, wanted)
		if !ok {
			return nil, top, failf("ARTIFACT_UNAVAILABLE", "the artifact has no image for %s", wanted)
		}
		if data, ok = a.content[below.Digest]; !ok {
			return nil, top, failf("ARTIFACT_UNAVAILABLE", "part %s of the artifact does not exist", below.Digest)
		}
		top = below
	}
	return nil, top, failf("ARTIFACT_UNAVAILABLE", "an index lists an index")
}

// choose returns the manifest of a platform, with or without its variant.
func choose(listed []descriptor, wanted string) (descriptor, bool) {
	for _, one := range listed {
		if p := one.Platform; p != nil &&
			(wanted == p.OS+"/"+p.Architecture || wanted == p.OS+"/"+p.Architecture+"/"+p.Variant) {
			return one, true
		}
	}
	return descriptor{}, false
}

// titledFiles returns the files of the layers that have names.
func (a *Artifacts) titledFiles(found *document) (files []File, err error) {
	for _, layer := range found.Layers {
		name := layer.Annotations[titled]
		if name == "" {
			continue
		}
		if path.Clean("/"+name) != "/"+name {
			return nil, failf("PATH_INVALID", "a layer's title %q is not the name of a file below the path", name)
		}
		data, ok := a.content[layer.Digest]
		if !ok {
			return nil, failf("ARTIFACT_UNAVAILABLE", "part %s of the artifact does not exist", layer.Digest)
		}
		files = append(files, File{Name: name, Data: data})
	}
	return files, nil
}

// layout returns an OCI image layout of one manifest with all that it lists.
func (a *Artifacts) layout(found *document, top descriptor) ([]File, error) {
	parts := append([]descriptor{top}, found.Layers...)
	if found.Config != nil {
		parts = append(parts, *found.Config)
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType,
		"manifests": []descriptor{top}})
	if err != nil {
		return nil, fmt.Errorf("write an index: %w", err)
	}
	files := []File{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", index}}
	for _, part := range parts {
		data, ok := a.content[part.Digest]
		if !ok {
			return nil, failf("ARTIFACT_UNAVAILABLE", "part %s of the artifact does not exist", part.Digest)
		}
		files = append(files, File{"blobs/sha256/" + strings.TrimPrefix(part.Digest, "sha256:"), bytes.Clone(data)})
	}
	return files, nil
}
