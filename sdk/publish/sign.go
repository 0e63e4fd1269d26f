package publish

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// Signature is a signature that was pushed to a registry.
type Signature struct {
	// Ref is the signed artifact, pinned to its digest.
	Ref string `json:"ref"`
	// Digest is the digest of the signed artifact.
	Digest string `json:"digest"`
	// At is where the signature is: a manifest that refers to the artifact, or the tag of the older form.
	At string `json:"at"`
}

// Sign signs the artifact under a reference and pushes the signature beside it: a bundle that refers to it, or with
// classic one more layer under the tag `sha256-….sig`. A tag is resolved once; the digest found is signed.
func (r Registry) Sign(ctx context.Context, ref string, key crypto.Signer, classic bool) (*Signature, error) {
	target, err := r.parse(ref)
	if err != nil {
		return nil, err
	}
	found, err := remote.Head(target, r.options(ctx)...)
	if err != nil {
		return nil, refused(target, err)
	}
	digest := found.Digest.String()
	repository := target.Context()
	var signed *signing.Signed
	if classic {
		var earlier []byte
		if earlier, err = r.earlier(ctx, repository, digest); err != nil {
			return nil, err
		}
		signed, err = signing.ClassicImage(repository.Name(), digest, key, earlier)
	} else {
		signed, err = signing.Image(signing.Descriptor{MediaType: string(found.MediaType), Digest: digest,
			Size: found.Size},
			key)
	}
	if err != nil {
		return nil, err
	}
	at, err := r.attach(ctx, repository, signed)
	return &Signature{Ref: repository.Name() + "@" + digest, Digest: digest, At: at}, err
}

// earlier returns the manifest under the signature's tag; nil when the tag does not exist.
func (r Registry) earlier(ctx context.Context, repository name.Repository, digest string) ([]byte, error) {
	sum, err := signing.Sum(digest)
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(repository.Tag("sha256-"+sum+".sig"), r.options(ctx)...)
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the existing signatures: %w", err)
	}
	return found.Manifest, nil
}

// attach pushes a signature.
func (r Registry) attach(ctx context.Context, repository name.Repository, signed *signing.Signed) (string, error) {
	var target name.Reference = repository.Digest(describe("", signed.Manifest).Digest)
	if signed.Tag != "" {
		target = repository.Tag(signed.Tag)
	}
	for _, data := range signed.Blobs {
		if err := r.blob(ctx, target, inMemory(describe("application/octet-stream", data), data)); err != nil {
			return "", err
		}
	}
	_, err := r.put(ctx, target, signed.Manifest, signing.ManifestType, nil)
	return target.Name(), err
}

func inMemory(described signing.Descriptor, data []byte) content {
	return content{described, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// describeFile reads a file for its digest.
func describeFile(file string) (signing.Descriptor, error) {
	source, err := os.Open(file)
	if err != nil {
		return signing.Descriptor{}, err
	}
	defer func() { _ = source.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, source)
	return signing.Descriptor{MediaType: "application/octet-stream", Digest: sumOf(sum), Size: size}, err
}

// FileDigest is the digest of a file.
func FileDigest(file string) (string, error) {
	described, err := describeFile(file)
	return described.Digest, err
}
