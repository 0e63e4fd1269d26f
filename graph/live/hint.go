package live

import "time"

// hintLasts is how long news is waited for after its hint: until the first poll after those that follow a hint, since
// what an older transaction holds back for longer than those take is what takes longest.
const hintLasts = delayedPolls*delayedPoll + pollEvery

// hint is when the hint came whose news was not found yet; its zero value is none.
type hint struct{ at time.Time }

// come notes a hint, unless an earlier one waits for its news.
func (h *hint) come(now time.Time) {
	if h.at.IsZero() {
		h.at = now
	}
}

// looked notes a look after news, and returns how long after its hint it was found, if that was so. A hint may have no
// news, such as one of a change that was taken back: a feed that is never delayed finds none at once, others after hintLasts.
func (h *hint) looked(now time.Time, found, delayed bool) (took time.Duration, news bool) {
	if h.at.IsZero() {
		return 0, false
	}
	took = now.Sub(h.at)
	if found || !delayed || took > hintLasts {
		h.at = time.Time{}
	}
	return took, found
}
