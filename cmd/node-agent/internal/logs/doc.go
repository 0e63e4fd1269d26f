// Package logs reads what the processes of this node's members print, for people elsewhere, and bounds what is kept.
//
//	process ──pipes──▶ member's init ──▶ files of lines ──▶ Store.Read: masked, plain text ──▶ relay
//	                                                    └─▶ Store.Keep: the last part, before a member is removed
//
// Each line has a number that only rises for its process, across restarts of the process, of the member's init and of
// the agent, since numbers are written with the lines. A reader that goes on after the last number it has gets each
// line once; where rotation has taken lines it gets a gap. A follower waits for the kernel's notice that a file grew.
//
// Nothing that leaves this package is as it was printed: secrets that the platform issued to the member are masked, and
// what remains is valid UTF-8 without control characters.
package logs
