package fetch

import (
	"encoding/json"
	"runtime"
	"strings"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/content"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// maxManifest bounds a manifest or an index, in bytes; it is what the platform takes at publishing.
	maxManifest = 4 << 20
	// maxParts bounds what a manifest lists.
	maxParts = 2048
	// maxDepth bounds indexes in indexes.
	maxDepth = 4
	// titleKey is where a manifest says what a layer's file is called.
	titleKey = "org.opencontainers.image.title"
)

// Descriptor is how a manifest names one of its parts, in the words of OCI.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *Platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Platform is the architecture and operating system that an image of an index is for.
type Platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant,omitempty"`
}

// Part is the descriptor as the cache knows it.
func (d Descriptor) Part() content.Part { return content.Part{Digest: d.Digest, Size: d.Size} }

// Title is the name of the file, empty where the manifest gives none.
func (d Descriptor) Title() string { return d.Annotations[titleKey] }

// document is an index or a manifest: an index has manifests, a manifest has a config and layers.
type document struct {
	MediaType string       `json:"mediaType"`
	Manifests []Descriptor `json:"manifests"`
	Config    *Descriptor  `json:"config"`
	Layers    []Descriptor `json:"layers"`
}

func parse(raw []byte, of Descriptor) (document, error) {
	var found document
	if err := json.Unmarshal(raw, &found); err != nil {
		return found, unavailable("the manifest %s is not JSON: %v", of.Digest, err)
	}
	if len(found.Manifests)+len(found.Layers) > maxParts {
		return found, unavailable("the manifest %s lists more than %d parts", of.Digest, maxParts)
	}
	return found, nil
}

// index reports whether a document is an index and not a manifest.
func (d document) index(of Descriptor) bool {
	switch {
	case d.Config != nil || len(d.Layers) > 0:
		return false
	case len(d.Manifests) > 0:
		return true
	}
	return strings.Contains(of.MediaType, "index") || strings.Contains(of.MediaType, "manifest.list")
}

// parts is everything that belongs to a manifest, itself first.
func (d document) parts(self Descriptor) []Descriptor {
	all := []Descriptor{self}
	if d.Config != nil {
		all = append(all, *d.Config)
	}
	return append(all, d.Layers...)
}

// pick returns the manifest for a platform: the exact one, or the first of any variant when wanted names none.
func (d document) pick(wanted string) (Descriptor, error) {
	var offered []string
	var loose *Descriptor
	for i, one := range d.Manifests {
		if one.Platform == nil {
			continue
		}
		name := one.Platform.OS + "/" + one.Platform.Architecture
		if one.Platform.Variant != "" {
			name += "/" + one.Platform.Variant
		}
		if name == wanted {
			return one, nil
		}
		if loose == nil && strings.HasPrefix(name, wanted+"/") {
			loose = &d.Manifests[i]
		}
		if len(offered) < 20 {
			offered = append(offered, name)
		}
	}
	if loose != nil {
		return *loose, nil
	}
	return Descriptor{}, unavailable("the artifact has no image for %s, it has: %s", wanted,
		strings.Join(offered, ", "))
}

func hostPlatform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func unavailable(format string, args ...any) *wire.Error {
	return wire.Errorf(wire.CodeArtifactUnavailable, format, args...)
}
