package nodetask

import (
	"strconv"
	"time"
)

// The values that a node takes where the details give none.
const (
	DefaultBackoff      = time.Second
	DefaultStopTimeout  = 10 * time.Second
	DefaultInterval     = time.Second
	DefaultProbeTimeout = 5 * time.Second
	DefaultMode         = 0o644
)

// Backoff returns the pause before the first restart.
func (r Restart) Backoff() time.Duration { return duration(r.BackoffSeconds, DefaultBackoff) }

// StopTimeout returns the time from the stop signal to SIGKILL.
func (s StartProcess) StopTimeout() time.Duration {
	return duration(s.StopTimeoutSeconds, DefaultStopTimeout)
}

// Tries returns the most attempts, at least 1.
func (p Probe) Tries() int { return max(p.Attempts, 1) }

// Interval returns the pause between two attempts.
func (p Probe) Interval() time.Duration { return duration(p.IntervalSeconds, DefaultInterval) }

// Timeout returns the bound of each attempt.
func (p Probe) Timeout() time.Duration { return duration(p.TimeoutSeconds, DefaultProbeTimeout) }

// Mode returns the permission bits of a mode that Parse has accepted; 0644 for an empty one.
func Mode(text string) uint32 {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return DefaultMode
	}
	return uint32(mode) // #nosec G115 -- 32 bits were read
}

// duration returns seconds to the millisecond, which is as fine as a node counts.
func duration(seconds float64, absent time.Duration) time.Duration {
	if seconds == 0 {
		return absent
	}
	return time.Duration(seconds*1000) * time.Millisecond
}
