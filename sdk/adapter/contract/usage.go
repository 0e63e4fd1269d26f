package contract

import "time"

// UsagePage is metered usage since a cursor: the answer of GET /v1/instances/{id}/usage.
type UsagePage struct {
	// Cursor continues after this page.
	Cursor string `json:"cursor"`
	// Records are the records after the asked cursor, oldest first.
	Records []UsageRecord `json:"records"`
}

// UsageRecord is one metered quantity over one stretch of time. Its id is unique for ever, so
// that counting it twice is impossible.
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
}
