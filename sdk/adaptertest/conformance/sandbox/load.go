package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// maxLoaded bounds the bytes of all loaded artifacts together, which are held in memory.
const maxLoaded = 512 << 20

const (
	indexType = "application/vnd.oci.image.index.v1+json"
	fileType  = "application/octet-stream"
)

// Load adds the content of path and returns it as a manifest's artifact of this name. A folder is
// an OCI image layout: its only manifest, or the index of several. Anything else is a file. It
// refuses artifacts of more than 512 MiB together, and a layout with bytes that do not match their
// digests.
func (a *Artifacts) Load(name, path string) (adapter.Artifact, error) {
	info, err := os.Stat(path)
	if err != nil {
		return adapter.Artifact{}, fmt.Errorf("artifact %s: %w", name, err)
	}
	load := a.loadFile
	if info.IsDir() {
		load = a.loadLayout
	}
	loaded, err := load(path)
	if err != nil {
		return adapter.Artifact{}, fmt.Errorf("artifact %s: %w", name, err)
	}
	loaded.Name = name
	return loaded, nil
}

func (a *Artifacts) loadFile(path string) (adapter.Artifact, error) {
	data, err := a.read(path)
	if err != nil {
		return adapter.Artifact{}, err
	}
	return adapter.Artifact{Digest: a.Put(data), MediaType: fileType}, nil
}

// loadLayout adds every blob of a layout and returns its manifest or index.
func (a *Artifacts) loadLayout(dir string) (adapter.Artifact, error) {
	raw, err := a.read(filepath.Join(dir, "index.json"))
	if err != nil {
		return adapter.Artifact{}, fmt.Errorf("not an OCI image layout: %w", err)
	}
	var top document
	if err := json.Unmarshal(raw, &top); err != nil || len(top.Manifests) == 0 {
		return adapter.Artifact{}, fmt.Errorf("not an OCI image layout: index.json lists no manifest")
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil {
		return adapter.Artifact{}, err
	}
	for _, blob := range blobs {
		data, err := a.read(blob)
		if err != nil {
			return adapter.Artifact{}, err
		}
		if digest := a.Put(data); digest != "sha256:"+filepath.Base(blob) {
			return adapter.Artifact{}, fmt.Errorf("blob %s has the digest %s", filepath.Base(blob), digest)
		}
	}
	if len(top.Manifests) > 1 {
		return adapter.Artifact{Digest: a.Put(raw), MediaType: indexType}, nil
	}
	return adapter.Artifact{Digest: top.Manifests[0].Digest, MediaType: top.Manifests[0].MediaType}, nil
}

// read reads a file that the bound has space for.
func (a *Artifacts) read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	room := a.room()
	tooLarge := fmt.Errorf("artifacts of more than %d bytes are too large to be kept in memory", maxLoaded)
	if info, err := file.Stat(); err == nil && info.Size() > room {
		return nil, tooLarge
	}
	data, err := io.ReadAll(io.LimitReader(file, room+1))
	if err == nil && int64(len(data)) > room {
		return nil, tooLarge
	}
	return data, err
}

func (a *Artifacts) room() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	room := int64(maxLoaded)
	for _, data := range a.content {
		room -= int64(len(data))
	}
	return room
}
