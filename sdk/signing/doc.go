// Package signing makes the signatures that the platform requires of artifacts, with a key pair and without any
// service: those of `cosign sign` and `cosign sign-blob` with a key, in forms that cosign and its library verify too.
//
// An image, and anything else that lies in a registry under a manifest, is signed by a bundle: a DSSE envelope around
// an in-toto statement that names the manifest's digest, pushed as an OCI 1.1 referrer of that manifest (Image). The
// older form is a payload that names the digest, under the tag `sha256-….sig` (ClassicImage). A single file is signed
// by a bundle (Blob) that lies beside it as `FILE.sigstore.json`, or by a bare signature (DetachedBlob) as `FILE.sig`.
//
// Everything here is bytes: nothing is sent anywhere. Package publish of this SDK pushes the signatures.
package signing

// The names of the formats.
const (
	// BundleType is the media type of a bundle, of its layer, and the artifact type of the referrer that holds it.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// StatementType is the payload type of a bundle's envelope.
	StatementType = "application/vnd.in-toto+json"
	// Statement is the type of the statement itself.
	Statement = "https://in-toto.io/Statement/v1"
	// PredicateType says that a statement is a signature and no other claim.
	PredicateType = "https://sigstore.dev/cosign/sign/v1"
	// PredicateAnnotation and ContentAnnotation describe a referrer's content, so that it need not be fetched.
	PredicateAnnotation = "dev.sigstore.bundle.predicateType"
	ContentAnnotation   = "dev.sigstore.bundle.content"
	// PayloadType is the media type of the older form's payload.
	PayloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// PayloadKind is the type that such a payload states.
	PayloadKind = "cosign container image signature"
	// SignatureAnnotation holds the older form's signature, base64, at its layer.
	SignatureAnnotation = "dev.cosignproject.cosign/signature"
	// ManifestType and EmptyType are the OCI media types of an image manifest and of the empty JSON object.
	ManifestType = "application/vnd.oci.image.manifest.v1+json"
	EmptyType    = "application/vnd.oci.empty.v1+json"
)
