package operation

import "time"

// Work is something that runs on members and that an operation waits for or would lose, by the
// adapter's word.
type Work struct {
	Kind, ID, Name, MemberID, Owner string
	Since                           *time.Time // nil when the adapter does not say
	Message                         string
}
