package contract

import "time"

// UsagePage is metered usage since a cursor: the answer of GET /v1/instances/{id}/usage.
type UsagePage struct {
	// Cursor continues after this page.
	Cursor string `json:"cursor"`
	// Count is how many records of the instance there are up to Cursor, from the first one on, so that a reader can
	// prove that none was passed over; 0 when the adapter does not count them.
	Count int `json:"count,omitempty"`
	// Records are the records after the asked cursor, oldest first.
	Records []UsageRecord `json:"records"`
}

// UsageRecord is one metered quantity over one stretch of time. Its id is unique for ever, so
// that counting it twice is impossible: it is derived from what is counted, never from the sending. A record
// that was sent never changes; what was wrong is taken back by a record that retracts it.
type UsageRecord struct {
	// ID is unique within the adapter.
	ID string `json:"id"`
	// Dimension is one of the app's usage dimensions.
	Dimension string `json:"dimension"`
	// Quantity is a decimal number written as text, so that nothing is rounded on the way.
	Quantity string `json:"quantity"`
	// From is when the stretch begins.
	From time.Time `json:"from"`
	// To is when the stretch ends.
	To time.Time `json:"to"`
	// MemberID is the member that it is about; empty for the whole instance.
	MemberID string `json:"memberId,omitempty"`
	// Session is what a price per started minute is rounded over, such as a job's id; empty for the member, or for the
	// instance.
	Session string `json:"session,omitempty"`
	// Retracts is the id of a record of the same dimension that this one takes back, by a quantity below zero; empty
	// for none.
	Retracts string `json:"retracts,omitempty"`
}
