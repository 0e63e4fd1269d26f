package tx

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// maxSkew is how far a process's clock may be from the database's. No stored time is by the process's clock; what other
// machines check by their own clocks is, such as certificates.
const maxSkew = 2 * time.Second

// Bounds of reading the database's clock.
const (
	clockEvery = time.Second
	clockReads = 5 // of a process that opens the database; the tightest counts
	// clockOpens bounds those reads, with the connection that the first of them opens: a process starts even when the
	// database is busy, as after a failure.
	clockOpens = 30 * time.Second
	// clockStrikes is how many readings in a row must find the process's clock off before the process stops.
	clockStrikes = 2
	// clockDrift is how far two clocks run apart at most, of the time that passed.
	clockDrift = 500e-6
)

// ErrSkew reports that the process's clock and the database's are too far apart.
var ErrSkew = errors.New("the clock is off")

// clock keeps the database's time between readings of it, by the process's monotonic clock, which no one sets. The
// process's own clock decides nothing: it is only compared.
type clock struct {
	own func() time.Time // the process's, by Options.Now

	mu   sync.Mutex
	base time.Time // when the process began to keep time, with a monotonic reading
	// low and high bound what is to be added to base and the monotonic time since, as at was last known.
	low, high, at time.Duration
	known         bool
	skew          time.Duration
}

func newClock(own func() time.Time) *clock { return &clock{own: own, base: time.Now()} }

// elapsed is the monotonic time since base.
func (c *clock) elapsed() time.Duration { return time.Since(c.base) }

// now returns the database's time, late by at most the shortest round trip that was seen, and never ahead: a time that
// it stamps on a row is in the future for no reader.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Round(0).Add(c.elapsed() + c.low)
}

// observe records that the database's clock showed moment between two readings of the monotonic one.
func (c *clock) observe(moment time.Time, before, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := moment.Sub(c.base.Round(0))
	low, high := since-after, since-before
	if c.known {
		drift := time.Duration(float64(after-c.at) * clockDrift)
		tight, wide := max(low, c.low-drift), min(high, c.high+drift)
		if tight <= wide { // else the database's clock was set, or it is another server's
			low, high = tight, wide
		}
	}
	c.low, c.high, c.at, c.known = low, high, after, true
	c.compare(low, high)
}

// look compares the process's clock without a new reading of the database's: the last one counts, with the drift since.
func (c *clock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	drift := time.Duration(float64(c.elapsed()-c.at) * clockDrift)
	c.compare(c.low-drift, c.high+drift)
}

// compare notes by how much the process's own clock is certainly off: positive is ahead. A halt of the process between
// two of the readings widens the bounds, and so proves no error. low and high are as those of clock.
func (c *clock) compare(low, high time.Duration) {
	before := c.elapsed()
	own := c.own().Round(0)
	after := c.elapsed()
	least := own.Sub(c.base.Round(0).Add(after + high))
	most := own.Sub(c.base.Round(0).Add(before + low))
	switch {
	case least > 0:
		c.skew = least
	case most < 0:
		c.skew = most
	default:
		c.skew = 0
	}
}

// off returns an error when the process's clock is too far from the database's.
func (c *clock) off() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	by, way := c.skew, "ahead of"
	if by < 0 {
		by, way = -by, "behind"
	}
	if by <= maxSkew {
		return nil
	}
	return fmt.Errorf("%w: this machine's clock is %s %s the database's, and %s is the most: synchronise both "+
		"machines by NTP, then start again",
		ErrSkew, by.Round(time.Millisecond), way, maxSkew)
}

// readClock reads the database's clock. It waits for a connection as long as ctx lasts.
func (db *DB) readClock(ctx context.Context) error {
	conn, err := db.lease.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	defer conn.Release()
	var moment time.Time
	before := db.clock.elapsed()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&moment); err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	db.clock.observe(moment, before, db.clock.elapsed())
	return nil
}

// setClock reads the database's time. It returns ErrSkew when the process's own is too far from it.
func (db *DB) setClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clockOpens)
	defer cancel()
	for range clockReads {
		if err := db.readClock(ctx); err != nil {
			return err
		}
	}
	return db.clock.off()
}

// KeepTime follows the database's clock until ctx ends. It returns ErrSkew when the process's own is too far from it,
// twice in a row: the process must stop. While the database does not answer, the monotonic clock keeps its time.
func (db *DB) KeepTime(ctx context.Context) error {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for strikes := 0; strikes < clockStrikes; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !db.readSoon(ctx) {
			db.clock.look() // a database that is away is not the clock's fault, and no excuse for it
		}
		strikes++
		if db.clock.off() == nil {
			strikes = 0
		}
	}
	return db.clock.off()
}

// readSoon reads the database's clock, and reports whether it did within clockEvery.
func (db *DB) readSoon(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, clockEvery)
	defer cancel()
	return db.readClock(ctx) == nil
}

// Skew returns by how much the process's clock was certainly ahead of the database's when they were last compared;
// negative is behind.
func (db *DB) Skew() time.Duration {
	db.clock.mu.Lock()
	defer db.clock.mu.Unlock()
	return db.clock.skew
}
