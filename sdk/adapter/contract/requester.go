package contract

// Requester is who asked for an action.
type Requester struct {
	// ID is the caller's id.
	ID string `json:"id"`
	// Kind is what the caller is, such as "user" or "service_account".
	Kind string `json:"kind"`
	// ProjectID is the project that asks: the instance's own, or one that is attached to its shared control plane.
	ProjectID string `json:"projectId,omitempty"`
	// Posix is the account that the requester is in the instance's tenant; absent unless the app's manifest requires
	// identities, and for requesters that are neither a person nor a service account.
	Posix *PosixIdentity `json:"posix,omitempty"`
}

// PosixIdentity is an account of POSIX systems. It is one person's or service account's in the instance's tenant for
// good: it never changes, and no one else gets its name or its ids, in any app.
type PosixIdentity struct {
	// Name is the name of the account and of its own group: a lower-case letter, then lower-case letters, digits, - and
	// _, at most 31 bytes.
	Name string `json:"name"`
	// UID is the account's id, 1,000 to 59,999, which is inside the ids of every member.
	UID int `json:"uid"`
	// GID is the id of the account's own group; the same number.
	GID int `json:"gid"`
}
