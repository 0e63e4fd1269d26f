package contract

import "encoding/json"

// RoleObservation sums up the members of one component, in the app's own words.
type RoleObservation struct {
	// ComponentKey names the component.
	ComponentKey string `json:"componentKey"`
	// Health is the adapter's judgement of the component.
	Health Health `json:"health"`
	// Summary is one line for a person, such as "2 idle, 1 allocated"; at most [MaxSummary] bytes of it are shown.
	Summary string `json:"summary"`
	// Detail is for a person who debugs; an object of at most [MaxDetail] bytes.
	Detail json.RawMessage `json:"detail,omitempty"`
}
