package lifecycle

import "io"

// Values lists every SourceKind as it is stored and published.
func (SourceKind) Values() []string {
	return names(SourceOCI, SourceHTTPS, SourceS3)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s SourceKind) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *SourceKind) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every SignaturePolicy as it is stored and published.
func (SignaturePolicy) Values() []string {
	return names(SignatureRequired, SignatureQuarantine, SignatureOptional)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s SignaturePolicy) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *SignaturePolicy) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every ArtifactKind as it is stored and published.
func (ArtifactKind) Values() []string {
	return names(ArtifactImage, ArtifactOCI, ArtifactBlob)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s ArtifactKind) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *ArtifactKind) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every SignatureState as it is stored and published.
func (SignatureState) Values() []string {
	return names(SignatureVerified, SignatureMissing, SignatureUntrusted, SignatureNotChecked)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s SignatureState) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *SignatureState) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every PartRole as it is stored and published.
func (PartRole) Values() []string {
	return names(PartManifest, PartConfig, PartLayer, PartBlob)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s PartRole) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *PartRole) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every EvidenceKind as it is stored and published.
func (EvidenceKind) Values() []string {
	return names(EvidenceConformance, EvidenceTenancy)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s EvidenceKind) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *EvidenceKind) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every CanaryVerdict as it is stored and published.
func (CanaryVerdict) Values() []string {
	return names(CanaryTooEarly, CanaryNoWorse, CanaryWorse)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s CanaryVerdict) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *CanaryVerdict) UnmarshalGQL(v any) error { return readGQL(s, v) }
