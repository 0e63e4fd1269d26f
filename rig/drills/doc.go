// Package drills walks the runbooks: for an edge a fault is injected into a real installation, a program walks the
// runbook by what it reads of the public API, takes the edge, does what the edge says, and sees that the cause is
// cleared.
package drills
