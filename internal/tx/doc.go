// Package tx opens the database for a caller: every transaction begins by resolving the caller's credential, and is
// bound to that caller's rows from then on.
//
// Two shapes serve everything. Write is one verb: one connection, one transaction, an Ent client and
// hand-written SQL side by side on it, what nothing else in it reads sent along with COMMIT, hints
// for live readers held back until then. Read is one pipelined round trip: the caller's scope is set
// and the queries run under it in one implicit transaction, and the caller of Read checks the
// permission before it lets the rows out.
//
// Callers with a role at platform scope use another login role than those of tenants, agents a
// third, workers a fourth; none of them bypasses row-level security.
package tx
