package manifest

import "github.com/gpuaas/app-platform/domain/fault"

// IdentitiesPOSIX is the value of Requires.Identities of an app that acts as the accounts of people.
const IdentitiesPOSIX = "posix"

// Requires is what an app needs of the platform beyond capacity.
type Requires struct {
	// Identities is IdentitiesPOSIX where an action brings the name and ids of its requester's account; empty for
	// apps that do not distinguish people by accounts.
	Identities string `json:"identities,omitempty"`
}

// ActsAsPeople reports whether the app needs the POSIX identity of the requester of an action.
func (m *Manifest) ActsAsPeople() bool {
	return m.Requires != nil && m.Requires.Identities == IdentitiesPOSIX
}

// requires checks the need for identities against the actions, which alone bring them.
func (l *linter) requires(m *Manifest) {
	if m.ActsAsPeople() && len(m.Actions) == 0 {
		l.add(fault.BadValue, "requires.identities", "needs an action: an identity is that of an action's requester")
	}
}
