package signing

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// maxLayers bounds the signatures under one tag of the older form.
const maxLayers = 32

// Descriptor names something in a registry.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Signed is a signature as a registry takes it: the blobs first, then the manifest.
type Signed struct {
	// Manifest is pushed under Tag, or under its own digest when that is empty.
	Manifest []byte
	Tag      string
	Blobs    [][]byte
}

// manifest is an OCI image manifest.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        Descriptor        `json:"config"`
	Layers        []Descriptor      `json:"layers"`
	Subject       *Descriptor       `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// Image signs a manifest of a registry, by a bundle that is to be pushed as its referrer.
func Image(subject Descriptor, key crypto.Signer) (*Signed, error) {
	bundle, err := statement(subject.Digest, key)
	if err != nil {
		return nil, err
	}
	empty := []byte("{}")
	annotations := map[string]string{ContentAnnotation: "dsse-envelope", PredicateAnnotation: PredicateType}
	encoded, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: ManifestType, ArtifactType: BundleType,
		Config: describe(EmptyType, empty, nil), Layers: []Descriptor{describe(BundleType, bundle, nil)},
		Subject:     &Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations: annotations})
	return &Signed{Manifest: encoded, Blobs: [][]byte{empty, bundle}}, err
}

// ClassicImage signs the same in the older form: a payload under the tag `sha256-….sig`. earlier is the manifest that
// is under the tag, nil where the tag does not exist; its signatures stay. The payload names repository as its subject.
func ClassicImage(repository, digest string, key crypto.Signer, earlier []byte) (*Signed, error) {
	sum, err := Sum(digest)
	if err != nil {
		return nil, err
	}
	content := Payload{}
	content.Critical.Identity.Reference, content.Critical.Image.Digest, content.Critical.Type = repository, digest,
		PayloadKind
	payload, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	signature, err := sign(key, payload)
	if err != nil {
		return nil, err
	}
	whole := manifest{SchemaVersion: 2, MediaType: ManifestType}
	if earlier != nil {
		if err := json.Unmarshal(earlier, &whole); err != nil {
			return nil, fmt.Errorf("the signature's tag is not a manifest: %w", err)
		}
	}
	if len(whole.Layers) >= maxLayers {
		return nil, fmt.Errorf("the digest has %d signatures already", len(whole.Layers))
	}
	layer := describe(PayloadType, payload,
		map[string]string{SignatureAnnotation: base64.StdEncoding.EncodeToString(signature)})
	whole.Layers = append(whole.Layers, layer)
	config, err := json.Marshal(classicConfig(whole.Layers))
	if err != nil {
		return nil, err
	}
	whole.Config = describe("application/vnd.oci.image.config.v1+json", config, nil)
	encoded, err := json.Marshal(whole)
	return &Signed{Manifest: encoded, Tag: "sha256-" + sum + ".sig", Blobs: [][]byte{config, payload}}, err
}

// classicConfig is an image config as the older form has it: of no platform, with a layer for each signature.
func classicConfig(layers []Descriptor) map[string]any {
	var diffs []string
	for _, layer := range layers {
		diffs = append(diffs, layer.Digest)
	}
	return map[string]any{"architecture": "", "os": "", "config": struct{}{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs}}
}

// Blob signs a file by its digest, as a bundle to store beside it as `FILE.sigstore.json`. ECDSA signs the digest
// itself, as `cosign sign-blob` does; Ed25519, which cannot sign a digest in place of a file, signs a statement on it.
func Blob(digest string, key crypto.Signer) ([]byte, error) {
	public, err := Describe(key.Public())
	if err != nil {
		return nil, err
	}
	if public.Algorithm != ECDSA {
		return statement(digest, key)
	}
	raw, signature, err := signDigest(digest, key)
	if err != nil {
		return nil, err
	}
	bundle := newBundle(public)
	bundle.Message = &MessageSignature{Signature: signature}
	bundle.Message.Digest.Algorithm, bundle.Message.Digest.Digest = "SHA2_256", raw
	return json.Marshal(bundle)
}

// DetachedBlob signs a file by its digest with ECDSA, as base64 to store beside it as `FILE.sig`.
func DetachedBlob(digest string, key crypto.Signer) ([]byte, error) {
	public, err := Describe(key.Public())
	if err != nil {
		return nil, err
	}
	if public.Algorithm != ECDSA {
		return nil, errors.New("a bare signature over a digest needs an ECDSA key: sign with a bundle")
	}
	_, signature, err := signDigest(digest, key)
	return []byte(base64.StdEncoding.EncodeToString(signature) + "\n"), err
}

func signDigest(digest string, key crypto.Signer) (raw, signature []byte, err error) {
	sum, err := Sum(digest)
	if err != nil {
		return nil, nil, err
	}
	if raw, err = hex.DecodeString(sum); err != nil {
		return nil, nil, err
	}
	signature, err = key.Sign(rand.Reader, raw, crypto.SHA256)
	return raw, signature, err
}

// statement is a bundle around an in-toto statement about a digest.
func statement(digest string, key crypto.Signer) ([]byte, error) {
	sum, err := Sum(digest)
	if err != nil {
		return nil, err
	}
	public, err := Describe(key.Public())
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(InToto{Type: Statement,
		Subject:       []Resource{{Digest: map[string]string{"sha256": sum}}},
		PredicateType: PredicateType, Predicate: map[string]any{}})
	if err != nil {
		return nil, err
	}
	signature, err := sign(key, PAE(StatementType, payload))
	if err != nil {
		return nil, err
	}
	bundle := newBundle(public)
	bundle.Envelope = &Envelope{Payload: payload, PayloadType: StatementType,
		Signatures: []EnvelopeSignature{{Sig: signature}}}
	return json.Marshal(bundle)
}

func newBundle(public Public) Bundle {
	bundle := Bundle{MediaType: BundleType}
	bundle.Material.PublicKey = &struct {
		Hint string `json:"hint"`
	}{public.Hint}
	return bundle
}

// describe is the descriptor of some bytes.
func describe(mediaType string, data []byte, annotations map[string]string) Descriptor {
	sum := sha256.Sum256(data)
	return Descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data)),
		Annotations: annotations}
}
