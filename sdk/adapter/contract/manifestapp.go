package contract

import "encoding/json"

// ManifestApp is the part of an app manifest that the adapter of the app must agree with.
type ManifestApp struct {
	// App is the app's slug.
	App string `json:"app"`
	// Version is the manifest's version.
	Version string `json:"version"`
	// Components are its kinds of member.
	Components []Component `json:"components"`
	// ConfigSchema is the JSON Schema of an instance's config.
	ConfigSchema json.RawMessage `json:"configSchema"`
	// Actions are its own verbs.
	Actions []Action `json:"actions"`
	// UsageDimensions are what it meters.
	UsageDimensions []UsageDimension `json:"usageDimensions"`
}
