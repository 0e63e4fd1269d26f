// Package agent is the node agent itself: it enrols the node, keeps its credential fresh, reports to the platform that
// the node is alive, takes node tasks and reports their outcomes.
//
//	stream ─task─▶ desk ─journal: accepted─▶ queue of the member ─▶ executor ─journal: outcome─▶ reporter ─▶ platform
//
// A task that has its turn is begun only after the platform has answered that it is still wanted: what was taken before
// a cut may belong to an operation that ended meanwhile.
//
// The order of journal and act is what makes a task happen once. A task is journalled before anything
// is done for it, and its outcome before it is reported. A restarted agent gets every unfinished task
// again by the stream: one with an outcome in the journal is only reported; one that was accepted
// without an outcome is resumed, which for a command means attaching to it in its member; everything
// else can be done twice with the effect of once.
//
// What the agent is killed in the middle of goes on in the members, whose inits outlive it. Stopping
// the agent stops no member.
package agent
