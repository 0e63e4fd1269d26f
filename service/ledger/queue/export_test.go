package queue

import "time"

// The statements, for the test of what they cost.
var (
	ClaimSQL      = claimSQL
	ClaimSettings = claimSettings
	NextBesideSQL = nextBesideSQL
)

// Age makes the operation's reading so much older.
func (h *Held) Age(by time.Duration) { h.read = h.read.Add(-by) }
