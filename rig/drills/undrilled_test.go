package drills_test

import "slices"

// undrilled are the edges without a drill, each with the reason.
var undrilled = map[string]string{
	"database/slow/clock": "a server whose clock is turned needs a program that lies to it; make chaos turns clocks",
	"expiry/edge/not-taken": "the rig's servers speak plain HTTP behind what ends TLS; internal/edge tests broken files of a " +
		"certificate",
	"feeds-behind/subscriber/slow-consumer": "it takes more events than an installation of one node makes in minutes; " +
		"transport/wsapi tests a socket that is not read",
	"instance-stuck/created/pending":          "a worker that lives claims within milliseconds, and one that does not is NO_WORKER",
	"instance-stuck/waits/allocation-pending": "capacity is found at once or refused; it takes a node that goes in between",
	"instance-stuck/created/prepare-failed": "an allocation that is bound to a launch can only be released " +
		"with it",
	"instance-stuck/waits/allocation-failed":   "an allocation with members fails by a fault of the platform's alone",
	"instance-stuck/waits/node-refuses-member": "the drills' node starts plain processes, without walls; rig/e2e has nodes with walls",
	"instance-stuck/waits/node-runtime-missing": "the drills' node starts plain processes, without a container runtime; " +
		"rig/e2e has nodes with one",
	"instance-stuck/waits/plan-unknown": "it takes the build of a later floor; make chaos runs two builds",
	"instance-stuck/waits/task-overdue": "an agent ends its tasks by their time itself: it takes a fault of the agent's",
	"node-lost/unwell/runtime": "the drills' node starts plain processes, without a container runtime; rig/e2e has nodes " +
		"with one",
}

// unproved are edges whose drills are written and have not been seen to pass: -drills.written runs them too.
var unproved = []string{
	"adapter-away/silent/busy",
	"node-lost/for-good/members-lost",
	"node-lost/unwell/rebooted",
	"operator/system-app/unwell",
}

// reason is why an edge has no drill; empty for one that has.
func reason(place string) string {
	if slices.Contains(unproved, place) {
		return "its drill is written, and has not been seen to pass"
	}
	return undrilled[place]
}
