package lifecycle

// SourceKind is the protocol by which an artifact source is read.
type SourceKind string

// The protocols.
const (
	// SourceOCI is a registry that speaks the OCI distribution protocol.
	SourceOCI SourceKind = "OCI"
	// SourceHTTPS is a server that gives files by their address.
	SourceHTTPS SourceKind = "HTTPS"
	// SourceS3 is an object store that speaks the S3 protocol, addressed by path.
	SourceS3 SourceKind = "S3"
)

// Values lists every SourceKind as it is stored and published.
func (SourceKind) Values() []string { return names(SourceOCI, SourceHTTPS, SourceS3) }

// SignaturePolicy is what becomes of an artifact that no trusted key of its source has signed.
type SignaturePolicy string

// The policies, strictest first.
const (
	// SignatureRequired refuses it: nothing is stored.
	SignatureRequired SignaturePolicy = "REQUIRED"
	// SignatureQuarantine stores it in quarantine, which serves it to no one.
	SignatureQuarantine SignaturePolicy = "QUARANTINE"
	// SignatureOptional takes what has no signature; one that is there and wrong is quarantined all the same.
	SignatureOptional SignaturePolicy = "OPTIONAL"
)

// Values lists every SignaturePolicy as it is stored and published.
func (SignaturePolicy) Values() []string {
	return names(SignatureRequired, SignatureQuarantine, SignatureOptional)
}

// ArtifactKind is what sort of thing an artifact is.
type ArtifactKind string

// The kinds.
const (
	// ArtifactImage is a container image, or an index of one image for several platforms.
	ArtifactImage ArtifactKind = "IMAGE"
	// ArtifactOCI is anything else that lies in a registry under a manifest: weights, data sets, scripts.
	ArtifactOCI ArtifactKind = "OCI_ARTIFACT"
	// ArtifactBlob is one file.
	ArtifactBlob ArtifactKind = "BLOB"
)

// Values lists every ArtifactKind as it is stored and published.
func (ArtifactKind) Values() []string { return names(ArtifactImage, ArtifactOCI, ArtifactBlob) }

// SignatureState is what was found of an artifact's signatures when they were last checked.
type SignatureState string

// The states.
const (
	// SignatureVerified means that it has a signature by a key that its source trusts.
	SignatureVerified SignatureState = "VERIFIED"
	// SignatureMissing means that it has no signature at all.
	SignatureMissing SignatureState = "UNSIGNED"
	// SignatureUntrusted means that none of its signatures is by a key that its source trusts.
	SignatureUntrusted SignatureState = "UNTRUSTED"
	// SignatureNotChecked means that its source has no keys.
	SignatureNotChecked SignatureState = "NOT_CHECKED"
)

// Values lists every SignatureState as it is stored and published.
func (SignatureState) Values() []string {
	return names(SignatureVerified, SignatureMissing, SignatureUntrusted, SignatureNotChecked)
}

// PartRole is what a part is to its artifact.
type PartRole string

// The roles.
const (
	PartManifest PartRole = "MANIFEST"
	PartConfig   PartRole = "CONFIG"
	PartLayer    PartRole = "LAYER"
	PartBlob     PartRole = "BLOB"
)

// Values lists every PartRole as it is stored and published.
func (PartRole) Values() []string { return names(PartManifest, PartConfig, PartLayer, PartBlob) }

// EvidenceKind is what a piece of evidence for a manifest shows.
type EvidenceKind string

// The kinds of evidence that a publisher brings; lint and smoke are found by the platform itself.
const (
	// EvidenceConformance is the report of the adapter conformance suite.
	EvidenceConformance EvidenceKind = "CONFORMANCE"
	// EvidenceTenancy is the report of negative tests between tenants.
	EvidenceTenancy EvidenceKind = "TENANCY"
)

// Values lists every EvidenceKind as it is stored and published.
func (EvidenceKind) Values() []string { return names(EvidenceConformance, EvidenceTenancy) }

// CanaryVerdict is what a canary's numbers say against those of the active version.
type CanaryVerdict string

// The verdicts.
const (
	// CanaryTooEarly means too few launches for a verdict.
	CanaryTooEarly CanaryVerdict = "TOO_EARLY"
	// CanaryNoWorse means enough launches, and no sign of more failures.
	CanaryNoWorse CanaryVerdict = "NO_WORSE"
	// CanaryWorse means clearly more failures: the canary is halted.
	CanaryWorse CanaryVerdict = "WORSE"
)

// Values lists every CanaryVerdict as it is stored and published.
func (CanaryVerdict) Values() []string { return names(CanaryTooEarly, CanaryNoWorse, CanaryWorse) }
