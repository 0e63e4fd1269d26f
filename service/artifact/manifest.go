package artifact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// The bounds of what is taken from a source's manifests.
const (
	maxParts     = 2_048
	maxDepth     = 4        // of indexes within indexes
	maxManifests = 64 << 20 // bytes of all manifests of one artifact together
	maxPart      = 1 << 44  // bytes
	maxTitle     = 1_024    // bytes
	maxWord      = 255      // bytes of a media type
	maxPlatforms = 64
)

// emptyConfig is the config of a manifest that needs none.
const emptyConfig = "application/vnd.oci.empty.v1+json"

// imageConfigs are the configs that make a manifest a container image's.
var imageConfigs = []string{"application/vnd.oci.image.config.v1+json",
	"application/vnd.docker.container.image.v1+json"}

// part is one of the parts of an artifact.
type part struct {
	Role            lifecycle.PartRole
	Digest          string
	MediaType       string
	Size            int64 // bytes; -1 until it is known
	Platform, Title string
	Parent          string
	platformWanted  bool // an image's config that alone says the platform
}

// descriptor names a part in a manifest.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	Platform  *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Variant      string `json:"variant"`
	} `json:"platform"`
	Annotations struct {
		Title string `json:"org.opencontainers.image.title"`
	} `json:"annotations"`
}

// document is the part of a manifest or an index that is read.
type document struct {
	MediaType    string       `json:"mediaType"`
	ArtifactType string       `json:"artifactType"`
	Config       *descriptor  `json:"config"`
	Layers       []descriptor `json:"layers"`
	Manifests    []descriptor `json:"manifests"`
}

func malformed(format string, args ...any) *fault.Fault {
	return fault.New(fault.ArtifactUnavailable, "the manifest under this digest cannot be used: %s",
		fmt.Sprintf(format, args...))
}

// parseManifest reads a manifest or an index. ARTIFACT_UNAVAILABLE when it is neither, or both.
func parseManifest(data []byte) (*document, error) {
	var parsed document
	if err := json.Unmarshal(data, &parsed); err != nil {
		return nil, malformed("it is not the JSON of a manifest").Because(err)
	}
	index := parsed.Manifests != nil
	switch {
	case index && (parsed.Config != nil || parsed.Layers != nil):
		return nil, malformed("it lists both manifests and layers")
	case !index && parsed.Config == nil && len(parsed.Layers) == 0, index && len(parsed.Manifests) == 0:
		return nil, malformed("it lists no layers and no manifests")
	case len(parsed.Layers)+len(parsed.Manifests) > maxParts:
		return nil, malformed("it has more than %d parts", maxParts)
	case !word(parsed.MediaType) || !word(parsed.ArtifactType):
		return nil, malformed("a media type is not valid")
	}
	return &parsed, nil
}

// isIndex reports whether the document lists manifests.
func (d *document) isIndex() bool { return d.Manifests != nil }

// isImage reports whether the document is a container image's manifest.
func (d *document) isImage() bool {
	return d.ArtifactType == "" && d.Config != nil && slices.Contains(imageConfigs, d.Config.MediaType)
}

// holds is the media type of what the document holds.
func (d *document) holds(said string) string {
	switch {
	case d.ArtifactType != "":
		return d.ArtifactType
	case !d.isIndex() && !d.isImage() && d.Config != nil && d.Config.MediaType != "" &&
		d.Config.MediaType != emptyConfig:
		return d.Config.MediaType
	case d.MediaType != "":
		return d.MediaType
	}
	return said
}

// parts lists the parts of the document, without the document itself.
func (d *document) parts(parent part) ([]part, error) {
	var out []part
	add := func(role lifecycle.PartRole, listed ...descriptor) error {
		for _, one := range listed {
			made, err := one.part(role, parent)
			if err != nil {
				return err
			}
			out = append(out, made)
		}
		return nil
	}
	if d.Config != nil {
		if err := add(lifecycle.PartConfig, *d.Config); err != nil {
			return nil, err
		}
		out[0].platformWanted = d.isImage() && parent.Platform == ""
	}
	if err := add(lifecycle.PartLayer, d.Layers...); err != nil {
		return nil, err
	}
	return out, add(lifecycle.PartManifest, d.Manifests...)
}

func (d descriptor) part(role lifecycle.PartRole, parent part) (part, error) {
	title := d.Annotations.Title
	if !digest.Valid(d.Digest) || d.Size < 0 || d.Size > maxPart || !word(d.MediaType) || len(title) > maxTitle ||
		!printable(title) {
		return part{}, malformed("a part has no sha256 digest, or its size, media type or title is not valid")
	}
	made := part{Role: role, Digest: d.Digest, MediaType: d.MediaType, Size: d.Size, Title: title,
		Parent: parent.Digest}
	if role == lifecycle.PartManifest {
		made.Platform = parent.Platform
		if d.Platform != nil {
			made.Platform = platformOf(d.Platform.OS, d.Platform.Architecture, d.Platform.Variant)
		}
	}
	return made, nil
}

// platformOf names a platform; empty when the words name none.
func platformOf(os, architecture, variant string) string {
	if os == "" || architecture == "" || os == "unknown" || architecture == "unknown" {
		return ""
	}
	name := os + "/" + architecture
	if variant != "" {
		name += "/" + variant
	}
	if len(name) > 64 || !word(name) {
		return ""
	}
	return name
}

// configPlatform reads the platform from an image's config.
func configPlatform(data []byte) string {
	var config struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Variant      string `json:"variant"`
	}
	if json.Unmarshal(data, &config) != nil {
		return ""
	}
	return platformOf(config.OS, config.Architecture, config.Variant)
}

// word reports whether foreign text is short and printable, without blanks, or empty.
func word(text string) bool {
	return len(text) <= maxWord && printable(text) && !strings.ContainsFunc(text, unicode.IsSpace)
}

// printable reports whether foreign text can be stored and shown.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
