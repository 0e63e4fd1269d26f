// Package publish prepares artifacts for the platform: it builds a small image from programs that need nothing
// else (Build), pushes it, or any files as an OCI artifact, to a registry (Registry.PushLayout,
// Registry.PushFiles), and signs what is in the registry (Registry.Sign).
//
// The same input has the same digests: they depend neither on the clock nor on the machine or the person that builds.
// Content is streamed, whatever its size.
package publish

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// maxFiles bounds the files of an image or artifact.
const maxFiles = 1000

// Media types of what is built.
const (
	indexType  = "application/vnd.oci.image.index.v1+json"
	configType = "application/vnd.oci.image.config.v1+json"
	layerType  = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// File is a file that goes into an image.
type File struct {
	// From is its path on this machine, To its absolute path in the image: the root and its own name when empty.
	From, To string
}

// Image is what an image is built from.
type Image struct {
	// Files are put into its one layer, executable when they are so here; 1 to 1,000.
	Files []File
	// Entrypoint is what is run; the first file when empty.
	Entrypoint []string
	// Env are variables, NAME=value.
	Env []string
	// User is who runs it, such as 65532:65532; empty for root.
	User string
	// Platform is what it runs on, such as linux/amd64.
	Platform string
}

// config is an OCI image config.
type config struct {
	Architecture string          `json:"architecture"`
	Variant      string          `json:"variant,omitempty"`
	OS           string          `json:"os"`
	Config       containerConfig `json:"config"`
	RootFS       rootFS          `json:"rootfs"`
}

type containerConfig struct {
	User       string   `json:"User,omitempty"`
	Env        []string `json:"Env,omitempty"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// manifest is an OCI image manifest.
type manifest struct {
	SchemaVersion int                  `json:"schemaVersion"`
	MediaType     string               `json:"mediaType"`
	ArtifactType  string               `json:"artifactType,omitempty"`
	Config        signing.Descriptor   `json:"config"`
	Layers        []signing.Descriptor `json:"layers"`
}

// Build writes an image into an OCI image layout, which it creates when absent, and returns its manifest's digest. It
// replaces an image of the same platform in the layout; images of several platforms become one multi-platform image.
func Build(dir string, image Image) (digest string, err error) {
	platform, err := parsePlatform(image.Platform)
	if err != nil {
		return "", err
	}
	files, err := image.files()
	if err != nil {
		return "", err
	}
	layout, err := openLayout(dir)
	if err != nil {
		return "", err
	}
	layer, diffID, err := layout.layer(files)
	if err != nil {
		return "", err
	}
	entrypoint := image.Entrypoint
	if len(entrypoint) == 0 {
		entrypoint = []string{files[0].To}
	}
	described, err := layout.json(configType, config{Architecture: platform.Architecture, Variant: platform.Variant,
		OS:     platform.OS,
		Config: containerConfig{User: image.User, Env: image.Env, Entrypoint: entrypoint},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{diffID}}})
	if err != nil {
		return "", err
	}
	made, err := layout.json(signing.ManifestType, manifest{SchemaVersion: 2, MediaType: signing.ManifestType,
		Config: described,
		Layers: []signing.Descriptor{layer}})
	if err != nil {
		return "", err
	}
	return made.Digest, layout.list(made, platform)
}

// files are the image's files by their path in it, checked.
func (i Image) files() ([]File, error) {
	if len(i.Files) == 0 || len(i.Files) > maxFiles {
		return nil, fmt.Errorf("an image has 1 to %d files", maxFiles)
	}
	for _, pair := range i.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			return nil, fmt.Errorf("variable %q: must be NAME=value", pair)
		}
	}
	files, seen := make([]File, 0, len(i.Files)), map[string]bool{}
	for _, file := range i.Files {
		if file.To == "" {
			file.To = "/" + filepath.Base(file.From)
		}
		if !path.IsAbs(file.To) || path.Clean(file.To) != file.To || file.To == "/" || seen[file.To] {
			return nil, fmt.Errorf("path %q in the image: must be absolute, clean and given once", file.To)
		}
		seen[file.To] = true
		files = append(files, file)
	}
	return files, nil
}

// layer packs files into a layer of the layout, in one pass.
func (l layout) layer(files []File) (signing.Descriptor, string, error) {
	into, err := l.begin()
	if err != nil {
		return signing.Descriptor{}, "", err
	}
	defer into.drop()
	plain := sha256.New()
	packed := gzip.NewWriter(into)
	archive := tar.NewWriter(io.MultiWriter(packed, plain))
	ordered := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.To, b.To) })
	folders := map[string]bool{".": true}
	for _, file := range ordered {
		if err := pack(archive, file, folders); err != nil {
			return signing.Descriptor{}, "", err
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return signing.Descriptor{}, "", err
	}
	described, err := into.keep(layerType)
	return described, sumOf(plain), err
}

// pack writes one file with the folders that it lies in.
func pack(archive *tar.Writer, file File, folders map[string]bool) error {
	source, err := os.Open(file.From)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file.From)
	}
	name := strings.TrimPrefix(file.To, "/")
	var missing []string
	for dir := path.Dir(name); !folders[dir]; dir = path.Dir(dir) {
		folders[dir] = true
		missing = append(missing, dir)
	}
	slices.Reverse(missing)
	epoch := time.Unix(0, 0).UTC()
	for _, dir := range missing {
		if err := archive.WriteHeader(&tar.Header{Name: dir + "/", Mode: 0o755, Typeflag: tar.TypeDir,
			ModTime: epoch}); err != nil {
			return err
		}
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: info.Size(), Typeflag: tar.TypeReg,
		ModTime: epoch}); err != nil {
		return err
	}
	_, err = io.Copy(archive, source)
	return err
}

// platform is what an image runs on.
type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant,omitempty"`
}

func (p platform) String() string {
	return strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

func parsePlatform(text string) (platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return platform{}, fmt.Errorf("platform %q: must be such as linux/amd64 or linux/arm64/v8", text)
	}
	return platform{OS: parts[0], Architecture: parts[1], Variant: strings.Join(parts[2:], "")}, nil
}

// sumOf is a hash as a digest.
func sumOf(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

// describe is the descriptor of some bytes.
func describe(mediaType string, data []byte) signing.Descriptor {
	sum := sha256.Sum256(data)
	return signing.Descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]),
		Size: int64(len(data))}
}

// json stores a document in the layout.
func (l layout) json(mediaType string, document any) (signing.Descriptor, error) {
	data, err := json.Marshal(document)
	if err != nil {
		return signing.Descriptor{}, err
	}
	into, err := l.begin()
	if err != nil {
		return signing.Descriptor{}, err
	}
	defer into.drop()
	if _, err := into.Write(data); err != nil {
		return signing.Descriptor{}, err
	}
	return into.keep(mediaType)
}
