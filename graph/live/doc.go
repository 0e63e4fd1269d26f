// Package live serves the subscriptions that many watch at once.
//
// Subscribers of the same document, variables and feed share one group: it waits for the feed's
// wake-ups, reads what is new once, executes and encodes each event once, and hands the same bytes
// to all. A subscriber first replays alone, from its cursor up to where the group stands, and joins
// it at exactly that place, under the group's lock: no gap, no duplicate.
//
//	after ──replay pages──▶ at the group's place? ──yes──▶ joined: live
//	              ▲                   │ no
//	              └───────────────────┘
//
// The wake-up is a hint; a slow look of the group's own backs it up. A group without subscribers
// ends.
package live
