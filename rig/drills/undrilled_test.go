package drills_test

// undrilled are the edges without a drill, each with the reason.
var undrilled = map[string]string{
	"database/slow/clock": "a server whose clock is turned needs a program that lies to it; make chaos turns clocks",
	"expiry/edge/not-taken": "the rig's servers speak plain HTTP behind what ends TLS; internal/edge tests broken files of a " +
		"certificate",
	"feeds-behind/subscriber/slow-consumer": "it takes more events than an installation of one node makes in minutes; " +
		"transport/wsapi tests a socket that is not read",
	"instance-stuck/created/prepare-failed": "an allocation that is bound to a launch can only be released " +
		"with it",
	"instance-stuck/waits/allocation-failed":   "an allocation with members fails by a fault of the platform's alone",
	"instance-stuck/waits/node-refuses-member": "the drills' node starts plain processes, without walls; rig/e2e has nodes with walls",
	"instance-stuck/waits/node-runtime-missing": "the drills' node starts plain processes, without a container runtime; " +
		"rig/e2e has nodes with one",
	"instance-stuck/waits/plan-unknown": "it takes the build of a later floor; make chaos runs two builds",
	"instance-stuck/waits/task-overdue": "an agent ends its tasks by their time itself: it takes a fault of the agent's",
	"operator/system-app/failed": "the drills' installation has no tenant of the platform's own; a failed launch is drilled " +
		"for other apps",
	"operator/system-app/unwell": "as above; members that are lost are drilled for other apps",
	"node-lost/unwell/runtime": "the drills' node starts plain processes, without a container runtime; rig/e2e has nodes " +
		"with one",
}
