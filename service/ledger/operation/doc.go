// Package operation is the ledger of durable work: what was requested, by whom, how far it is and how it ended. A verb
// creates an operation in its own transaction; a worker carries it out; reports of its adapter move it. The operation's
// row is its own queue.
//
// This package writes the moves between states; the workers' engine decides when, and queue.Claim writes the first:
//
//	PENDING ──▶ RUNNING ──────── QueueFinish ───────▶ SUCCEEDED
//	            │  ▲  │                                   ▲
//	     Cancel │  │  │ Compensate                        │ it was done before the cancel arrived
//	            ▼  │  └─────────────┐                     │
//	         CANCELING ─────────────┼─────────────────────┘
//	            │                   ▼
//	            └─ Compensate ─▶ COMPENSATING ──▶ FAILED | CANCELED    undone; what could not be is listed as orphans
//
//	PENDING | RUNNING | CANCELING ─ Fail, Canceled ─▶ FAILED | CANCELED    with nothing to undo
//
// CANCELING returns to RUNNING when the adapter reports that it is too late. The moves that exist are those of
// lifecycle.OperationState; the database refuses any other. While an operation is open, Advance stores its progress,
// Absorb stores what its adapter answers or lists in its feed, and Report stores what the adapter sends by itself,
// fenced by the dispatch attempt. The percentage never falls, and no report changes an operation that has ended.
package operation
