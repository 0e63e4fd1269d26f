package publish

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// maxDocument bounds an index or a manifest, in bytes.
const maxDocument = 4 << 20

// layout is an OCI image layout: a folder with an index and blobs by their digest.
type layout struct{ dir string }

// entry is a manifest that an index lists.
type entry struct {
	signing.Descriptor
	Platform *platform `json:"platform,omitempty"`
}

// index is an OCI image index.
type index struct {
	SchemaVersion int     `json:"schemaVersion"`
	MediaType     string  `json:"mediaType"`
	Manifests     []entry `json:"manifests"`
}

// openLayout creates what is missing of a layout in dir.
func openLayout(dir string) (layout, error) {
	l := layout{dir}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return l, err
	}
	marker := filepath.Join(dir, "oci-layout")
	if _, err := os.Stat(marker); err == nil {
		return l, nil
	}
	return l, os.WriteFile(marker, []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
}

// index reads the index of the layout; an empty one when the file does not exist yet.
func (l layout) index() (index, error) {
	out := index{SchemaVersion: 2, MediaType: indexType}
	data, err := readBounded(filepath.Join(l.dir, "index.json"))
	if errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("%s is not an OCI image layout: %w", l.dir, err)
	}
	return out, nil
}

// list puts an image into the index, in the place of an earlier one of its platform.
func (l layout) list(made signing.Descriptor, on platform) error {
	current, err := l.index()
	if err != nil {
		return err
	}
	kept := []entry{}
	for _, one := range current.Manifests {
		if one.Platform == nil || *one.Platform != on {
			kept = append(kept, one)
		}
	}
	current.Manifests = append(kept, entry{made, &on})
	data, err := json.Marshal(current)
	if err != nil {
		return err
	}
	next := filepath.Join(l.dir, "index.json.new")
	if err := os.WriteFile(next, data, 0o644); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(l.dir, "index.json"))
}

// path returns the path of a blob; an error when the digest is malformed.
func (l layout) path(digest string) (string, error) {
	sum, err := signing.Sum(digest)
	return filepath.Join(l.dir, "blobs", "sha256", sum), err
}

// document reads a manifest or index of the layout and holds it against its digest.
func (l layout) document(digest string) ([]byte, error) {
	file, err := l.path(digest)
	if err != nil {
		return nil, err
	}
	data, err := readBounded(file)
	if err != nil {
		return nil, err
	}
	if describe("", data).Digest != digest {
		return nil, fmt.Errorf("the bytes of %s do not match the digest in its name", file)
	}
	return data, nil
}

// readBounded reads a file of at most maxDocument bytes.
func readBounded(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxDocument {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, maxDocument)
	}
	return os.ReadFile(file)
}

// blob is a blob of the layout that is being written.
type blob struct {
	layout layout
	file   *os.File
	sum    hash.Hash
	size   int64
}

func (l layout) begin() (*blob, error) {
	file, err := os.CreateTemp(l.dir, ".blob-*")
	if err != nil {
		return nil, err
	}
	return &blob{layout: l, file: file, sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (b *blob) Write(data []byte) (int, error) {
	n, err := b.file.Write(data)
	b.sum.Write(data[:n])
	b.size += int64(n)
	return n, err
}

// keep gives the blob its name.
func (b *blob) keep(mediaType string) (signing.Descriptor, error) {
	described := signing.Descriptor{MediaType: mediaType, Digest: sumOf(b.sum), Size: b.size}
	file, err := b.layout.path(described.Digest)
	if err != nil {
		return described, err
	}
	if err := errors.Join(b.file.Chmod(0o644), b.file.Close()); err != nil {
		return described, err
	}
	return described, os.Rename(b.file.Name(), file)
}

// drop removes what was not kept.
func (b *blob) drop() {
	_ = b.file.Close()
	_ = os.Remove(b.file.Name())
}
