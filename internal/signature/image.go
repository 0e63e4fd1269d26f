package signature

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// Image reports what the signatures of a manifest state about its digest: the bundles that refer to it, by the
// registry's list or under the tag that replaces one, and then those of the older form. It ends at the first by a
// trusted key. An error is the registry's own failure, or a malformed digest.
func Image(ctx context.Context, registry Registry, digest string, keys []Key) (Finding, error) {
	sum, err := signing.Sum(digest)
	if err != nil {
		return Finding{}, err
	}
	l := &look{digest: digest, keys: keys}
	if len(keys) == 0 {
		return l.found(), nil
	}
	for _, form := range []func(context.Context, Registry, string) error{l.referrers, l.classic} {
		if err := form(ctx, registry, sum); err != nil {
			return Finding{}, fmt.Errorf("signatures of %s: %w", digest, err)
		}
		if l.key != nil {
			break
		}
	}
	return l.found(), nil
}

// referrers checks the bundles that refer to the manifest.
func (l *look) referrers(ctx context.Context, registry Registry, sum string) error {
	listed, err := registry.Referrers(ctx, l.digest)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	tagged, err := underTag(ctx, registry, "sha256-"+sum)
	if err != nil {
		return err
	}
	for i, one := range candidates(append(listed, tagged...)) {
		if i == MaxSignatures {
			l.beyond("referrers")
			return nil
		}
		if err := l.referrer(ctx, registry, one); err != nil || l.key != nil {
			return err
		}
	}
	return nil
}

// underTag reads the index that lists the referrers where a registry does not list them itself.
func underTag(ctx context.Context, registry Registry, tag string) ([]Descriptor, error) {
	data, _, err := registry.Manifest(ctx, tag)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var index struct {
		Manifests []Descriptor `json:"manifests"`
	}
	if len(data) > MaxBytes || json.Unmarshal(data, &index) != nil {
		return nil, nil // the tag is anybody's: what is no index lists nothing
	}
	return index.Manifests, nil
}

// candidates returns the referrers that may hold a bundle, surest first, each once. Some registries list a referrer's
// config instead of its type, so only a type that is clearly another's is passed over.
func candidates(listed []Descriptor) []Descriptor {
	unsure := []string{"", signing.EmptyType, "application/vnd.oci.image.config.v1+json"}
	var found []Descriptor
	seen := map[string]bool{}
	for _, one := range listed {
		if seen[one.Digest] || !isBundle(one.ArtifactType) && !slices.Contains(unsure, one.ArtifactType) {
			continue
		}
		seen[one.Digest] = true
		found = append(found, one)
	}
	slices.SortStableFunc(found, func(a, b Descriptor) int { return cmp.Compare(likely(b), likely(a)) })
	return found
}

func isBundle(mediaType string) bool {
	return strings.HasPrefix(mediaType, "application/vnd.dev.sigstore.bundle")
}

// likely returns how sure it is that a referrer is a signature.
func likely(one Descriptor) int {
	switch {
	case one.Annotations[signing.PredicateAnnotation] == signing.PredicateType:
		return 2
	case isBundle(one.ArtifactType):
		return 1
	}
	return 0
}

// layered is the part of a manifest that is read.
type layered struct {
	Layers []Descriptor `json:"layers"`
}

// referrer checks one manifest that refers to the artifact.
func (l *look) referrer(ctx context.Context, registry Registry, one Descriptor) error {
	if _, err := signing.Sum(one.Digest); err != nil {
		return nil
	}
	data, _, err := registry.Manifest(ctx, one.Digest)
	if errors.Is(err, ErrNotFound) {
		l.remark("referrer %s is listed and does not exist", one.Digest)
		return nil
	}
	if err != nil {
		return err
	}
	var manifest layered
	if digest.Of(data) != one.Digest || len(data) > MaxBytes || json.Unmarshal(data, &manifest) != nil {
		if isBundle(one.ArtifactType) {
			l.against("referrer %s is malformed", one.Digest)
		}
		return nil
	}
	for i, layer := range manifest.Layers {
		if !isBundle(layer.MediaType) || i == MaxSignatures {
			continue
		}
		bundle, err := l.blob(ctx, registry, layer)
		if err != nil {
			return err
		}
		if bundle == nil {
			continue
		}
		l.bundle(bundle)
		if l.key != nil {
			return nil
		}
	}
	return nil
}

// blob reads what a layer holds; nil after it has noted why the layer does not count.
func (l *look) blob(ctx context.Context, registry Registry, layer Descriptor) ([]byte, error) {
	if _, err := signing.Sum(layer.Digest); err != nil || layer.Size < 0 || layer.Size > MaxBytes {
		l.against("a signature is malformed: its layer has no sha256 digest, or more than %d bytes", MaxBytes)
		return nil, nil
	}
	data, err := registry.Blob(ctx, layer.Digest, MaxBytes)
	if errors.Is(err, ErrNotFound) {
		l.against("a signature's layer %s does not exist", layer.Digest)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if digest.Of(data) != layer.Digest {
		l.against("a signature's layer has other bytes than its digest %s says", layer.Digest)
		return nil, nil
	}
	return data, nil
}

// classic checks the signatures of the older form.
func (l *look) classic(ctx context.Context, registry Registry, sum string) error {
	data, _, err := registry.Manifest(ctx, "sha256-"+sum+".sig")
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var manifest layered
	if len(data) > MaxBytes || json.Unmarshal(data, &manifest) != nil || len(manifest.Layers) == 0 {
		l.against("the manifest under the signature's tag is malformed")
		return nil
	}
	for i, layer := range manifest.Layers {
		if i == MaxSignatures {
			l.beyond("signatures")
			return nil
		}
		if layer.MediaType != signing.PayloadType {
			l.against("a signature's layer holds %s", shown(layer.MediaType))
			continue
		}
		payload, err := l.blob(ctx, registry, layer)
		if err != nil {
			return err
		}
		if payload == nil {
			continue
		}
		l.payload(payload, layer.Annotations[signing.SignatureAnnotation])
		if l.key != nil {
			return nil
		}
	}
	return nil
}

// decodeBase64 reads standard base64, padded or not.
func decodeBase64(text []byte) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(string(text), "="))
}
