package lifecycle

import "time"

// Pause returns the shortest time between an event of an instance and an event of mere progress that follows it, as
// the instance's row is hot. Each phase and message of an operation is to reach the timeline: a new phase waits least,
// and a message within a phase a little longer. A failed try is not progress: it is a blocker, and waits as long as a
// change of a percentage.
func Pause(phase, message, failedTry bool) time.Duration {
	switch {
	case failedTry:
		return time.Second
	case phase:
		return 50 * time.Millisecond
	case message:
		return 250 * time.Millisecond
	}
	return time.Second
}
