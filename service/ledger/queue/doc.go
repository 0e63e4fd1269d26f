// Package queue claims operations: the operation's row is its own queue. A claim takes due rows with SKIP LOCKED,
// fairly among tenants and projects; its epoch fences what the claimant writes. Claims are released one by one, handed
// over when a worker stops, and released for it when it died.
package queue
