// Package engine carries operations through their steps. It knows no app and no kind's meaning:
// kinds are registered as data.
//
//	            claim (epoch+1)          all steps ended        finish, one transaction
//	PENDING ───────────────▶ RUNNING ───────────────────────▶ SUCCEEDED
//	                          │  │ ▲
//	         cancel requested │  │ └── a step waits: claim released, due again at its moment or when woken
//	                          ▼  │
//	                  CANCELING  │ a step failed, or the deadline passed
//	      the adapter stopped │  │
//	                          ▼  ▼
//	                     COMPENSATING ── undo steps, in a time of their own ──▶ CANCELED | FAILED
//	                                     what is left becomes orphans
//
//	a step:  PENDING ─▶ RUNNING ─▶ SUCCEEDED | FAILED | SKIPPED      SUCCEEDED ─▶ UNDOING ─▶ UNDONE | FAILED
//
// An operation's row is its own queue (service/ledger/queue). A worker process claims due rows with SKIP LOCKED, in a
// statement that commits by itself, and runs their steps one after the other within one claim, as
// long as they end at once. A step that has to wait, for the adapter, for a node, for time, releases
// the claim: the row stores when to run it next, and news of it makes the operation due at once.
// So waiting costs no goroutine, connection or lease.
//
// The lease of whatever a process holds is its heartbeat row, by the database's clock. A process
// whose heartbeat is old has lost its claims; any other one makes them due again. Everything that a
// worker writes is fenced by the claim's epoch, under a lock on the operation, so that a worker that
// was only slow writes nothing after it was replaced. The adapter's reports are fenced by another
// number, the dispatch attempt, which a take-over does not raise.
//
// A request to stop goes to the adapter, and its answer decides: canceled, or too late. While the answer
// is unknown, the operation goes on as before and the stop is requested again. What was half done
// is taken back by undo steps, which are rows too, within a time of their own; what they could
// not take back is listed by the transaction that ends the operation, which therefore always comes.
// Force, from the start or at the deadline, skips the steps that can be skipped.
//
// A step may be run again at any point: after a crash between its effect and its record, after a
// take-over, after an error. Steps are written so that this is harmless.
package engine
