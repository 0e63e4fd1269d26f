package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Bounds of the waits between tries.
const (
	firstDelay    = 200 * time.Millisecond
	longestDelay  = 15 * time.Second
	maxRetryAfter = 60 * time.Second
)

// withRetries runs a try until it succeeds, fails for good, or the attempts are used up.
func (c *Client) withRetries(ctx context.Context, call call, try func(context.Context) (http.Header, error)) error {
	for attempt := 1; ; attempt++ {
		header, err := try(ctx)
		if err == nil || attempt >= c.options.MaxAttempts || !worthRetrying(call, err) {
			return err
		}
		delay := max(backoff(attempt), retryAfter(header, time.Now()))
		if !c.pause(ctx, Retry{Err: err, Attempt: attempt, Delay: delay}) {
			return err
		}
	}
}

// worthRetrying reports whether the failure is of the passing kind and the call may be repeated after it.
func worthRetrying(call call, err error) bool {
	found, ok := AsError(err)
	if !ok {
		return false
	}
	switch found.Code {
	case CodeRateLimited:
		return true
	case CodeUnavailable:
		return call.repeatable || neverSent(err)
	default:
		return false
	}
}

// pause calls OnRetry and waits; it reports whether the whole wait passed and the context still runs.
func (c *Client) pause(ctx context.Context, retry Retry) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < retry.Delay {
		return false
	}
	if c.options.OnRetry != nil {
		c.options.OnRetry(retry)
	}
	timer := time.NewTimer(retry.Delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// backoff doubles with every attempt, from 1, up to its bound; the jitter keeps many clients of one restarted
// server from coming back in step.
func backoff(attempt int) time.Duration {
	delay := longestDelay
	if attempt < 8 {
		delay = min(firstDelay<<(attempt-1), longestDelay)
	}
	return delay/2 + rand.N(delay/2) // #nosec G404 -- jitter
}

// retryAfter reads the header's seconds or date; 0 when it is missing or invalid, never more than maxRetryAfter.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
