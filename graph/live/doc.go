// Package live serves the subscriptions that many watch at once.
//
// Subscribers of the same document, variables and feed share one group. The group waits for the feed's wake-ups, reads
// the new events once, executes and encodes each event once, and sends the same bytes to all of its members.
//
// A subscriber goes through these states:
//
//	Open ── authorised by its Source, counted as a user of its group
//	  │
//	  ▼
//	replaying ◀──────────────────────┐
//	  │ joinEarly: does the group    │ sent, at the pace
//	  │ buffer what it misses?       │ of its socket
//	  │          │ no                │
//	  │          ▼                   │
//	  │     Replay: a page after its cursor, read with its own rights
//	  │ yes      │ empty: the end of the feed
//	  │          ▼
//	  │     join: at the group's cursor, or within its buffer?  ── no ──▶ replaying
//	  ▼          ▼ yes
//	live: a member of the group, which sends each new event
//	  │
//	  ▼
//	ended: stop was called, its queue was full, its right was lost (Sentinel), or an event could not be encoded
//
// It joins exactly at the group's cursor, under the group's lock: no gap, no duplicate. A group begins with its first
// user and ends with its last. It reads only while it has members; the first of them sets its cursor.
//
// A wake-up is a hint: a slow poll of the group backs it up. While a subscription is open, a Sentinel rechecks its
// caller's right every few seconds.
//
// Progress serves operationProgress, which sends the newest state of one operation rather than every event.
package live
