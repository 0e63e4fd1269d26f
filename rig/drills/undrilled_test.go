package drills_test

import "slices"

// undrilled are the edges without a drill, each with the reason.
var undrilled = map[string]string{
	"instance-stuck/waits/allocation-pending": "capacity is found at once or refused, so that nothing leaves an allocation " +
		"that is still to be found",
}

// unproved are edges whose drills are written and have not been seen to pass: -drills.written runs them too.
var unproved = []string{
	"adapter-away/silent/busy",
	"database/slow/clock",
	"expiry/edge/not-taken",
	"feeds-behind/subscriber/slow-consumer",
	"instance-stuck/created/pending",
	"instance-stuck/created/prepare-failed",
	"instance-stuck/waits/allocation-failed",
	"instance-stuck/waits/node-refuses-member",
	"instance-stuck/waits/node-runtime-missing",
	"instance-stuck/waits/plan-unknown",
	"instance-stuck/waits/task-overdue",
	"node-lost/unwell/runtime",
}

// reason is why an edge has no drill; empty for one that has.
func reason(place string) string {
	if slices.Contains(unproved, place) {
		return "its drill is written, and has not been seen to pass"
	}
	return undrilled[place]
}
