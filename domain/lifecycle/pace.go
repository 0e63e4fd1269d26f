package lifecycle

import "time"

// Pause is the shortest time between an event of an instance and one of mere progress that follows it: the instance's
// row is hot. What an operation says in turn is to be in the timeline too, so a phase that begins waits least, and
// another message within it a little longer. That a try failed is no news of the work: it is a blocker, and has the
// pace of percentages.
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
