package contract

import "encoding/json"

// Instance is what the adapter needs to know of an app instance.
type Instance struct {
	// ID is the instance's id.
	ID string `json:"id"`
	// Name is the name its owner gave it.
	Name string `json:"name"`
	// TenantID is the tenant it belongs to.
	TenantID string `json:"tenantId"`
	// ProjectID is the project it belongs to.
	ProjectID string `json:"projectId"`
	// App is the app's slug.
	App string `json:"app"`
	// Version is the manifest version it runs.
	Version string `json:"version"`
	// Config is its configuration, valid against the app's config schema.
	Config json.RawMessage `json:"config,omitempty"`
	// Components is the desired number of members for each component.
	Components []ComponentCount `json:"components"`
	// OperatingMode is who runs its control plane, "tenant_dedicated" or "platform_managed"; no part of the
	// specification, as it never changes.
	OperatingMode string `json:"operatingMode,omitempty"`
	// ControlPlaneScope is whom its control plane serves, "project" or "tenant"; no part of the specification, as it
	// never changes.
	ControlPlaneScope string `json:"controlPlaneScope,omitempty"`
	// RuntimeProfile is what the manifest of this version says to its adapter, in the publisher's words; absent when it
	// says nothing. It is no part of the specification, as it follows from the version.
	RuntimeProfile json.RawMessage `json:"runtimeProfile,omitempty"`
	// Artifacts are what the manifest of this version pins, for [FetchArtifact]; no part of the specification, as they
	// follow from the version.
	Artifacts []Artifact `json:"artifacts,omitempty"`
}

// Artifact is something that a manifest pins by its digest.
type Artifact struct {
	// Name is its name in the manifest.
	Name string `json:"name"`
	// Digest is what it is, "sha256:" and 64 hexadecimal digits.
	Digest string `json:"digest"`
	// MediaType is what sort of thing it is.
	MediaType string `json:"mediaType"`
}

// Artifact finds what the manifest calls by this name; ok is false when it pins nothing of the name.
func (i Instance) Artifact(name string) (found Artifact, ok bool) {
	for _, artifact := range i.Artifacts {
		if artifact.Name == name {
			return artifact, true
		}
	}
	return Artifact{}, false
}

// ComponentCount is the desired number of members of one component.
type ComponentCount struct {
	// Key names the component.
	Key string `json:"key"`
	// Count is how many members are wanted.
	Count int `json:"count"`
}
