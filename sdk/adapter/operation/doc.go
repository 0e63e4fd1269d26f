// Package operation runs the operations of an adapter. A dispatch is journalled before it is answered, fenced by its
// attempt, and run to its end by the author's [Func], which has a [Run] to work with; after a crash of the controller
// the run is called again from its first line.
//
//	accepted ──▶ running ──▶ succeeded | failed | canceled
//	    ▲            │
//	    └── again ◀──┘   a higher attempt after a failure, or with force while it runs
//
// The [Engine] keeps what is known of operations and instances in memory, the journal on disk, and the change feed for
// the platform. Package kit serves it by HTTP.
package operation
