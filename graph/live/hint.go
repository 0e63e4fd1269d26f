package live

import "time"

// hintLasts is how long a hint waits for its news: until the first regular poll after the quick ones that follow a
// hint. News takes longest when an older transaction holds it back for longer than the quick polls last.
const hintLasts = delayedPolls*delayedPoll + pollEvery

// hint is when a hint came whose news was not found yet; its zero value means that no hint waits.
type hint struct{ at time.Time }

// come notes a hint, unless an earlier one waits for its news.
func (h *hint) come(now time.Time) {
	if h.at.IsZero() {
		h.at = now
	}
}

// looked notes a poll for news. If news was found after a hint, it returns how long after. A hint may have no news, as
// of a change that was rolled back: a feed that is never delayed drops it at once, others drop it after hintLasts.
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
