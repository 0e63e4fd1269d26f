package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// injected is a fault that a lab was given, and what must be reported first for it.
type injected struct {
	op       *db.Operation // nil when the fault is an instance's
	instance *db.Instance  // nil when it is no instance's
	code     string
	owner    string
	subject  string
	key      string
	message  string    // part of the message
	since    time.Time // to the second; zero for some time in the last minute
	retried  bool      // it says when it is looked at next
	held     bool      // it may say so or not, since a worker tries at it most of the time
	then     string    // a code that must be told after it; empty for any
}

func TestTheRightBlockerIsFirstForEachFault(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for name, inject := range faults {
		require.False(t, known[name])
		known[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			is := inject(l)
			if is.op != nil {
				is.check(l, func() []*blocker.Blocker { return l.ofOperation(is.op.ID) })
			}
			if is.instance != nil {
				is.check(l, func() []*blocker.Blocker { return l.ofInstance(is.instance.ID) })
			}
		})
	}
}

// check waits until the fault is reported first, and asserts all of it.
func (is injected) check(l *lab, read func() []*blocker.Blocker) {
	l.Helper()
	var found []*blocker.Blocker
	matches := func() bool {
		found = read()
		return len(found) > 0 && found[0].Code == is.code && strings.Contains(found[0].Message, is.message) &&
			(is.held || (found[0].NextRetryAt != nil) == is.retried) && (is.then == "" || has(found, is.then))
	}
	deadline := time.Now().Add(patience)
	for !matches() {
		if time.Now().After(deadline) {
			require.Failf(l.TB, "the blocker is not first", "want %s (%s), have %s", is.code, is.message, list(found))
		}
		<-time.After(30 * time.Millisecond)
	}
	first := found[0]
	require.Equal(l.TB, is.owner, first.Owner)
	require.Equal(l.TB, is.subject, first.Subject)
	require.Equal(l.TB, is.key, first.PermissionKey)
	require.NotContains(l.TB, first.Message, "{", "every word is filled in")
	if is.since.IsZero() {
		require.WithinDuration(l.TB, time.Now(), first.Since, time.Minute)
	} else {
		require.WithinDuration(l.TB, is.since, first.Since, time.Second)
	}
}

func has(found []*blocker.Blocker, code string) bool {
	for _, one := range found[1:] {
		if one.Code == code {
			return true
		}
	}
	return false
}

// list is blockers for a failure's message.
func list(found []*blocker.Blocker) string {
	var out strings.Builder
	for _, one := range found {
		out.WriteString("\n  " + one.Code + " " + one.Owner + " " + one.Subject + ": " + one.Message)
	}
	return out.String()
}

// subject is an id as a subject.
func subject(id ids.ID) string { return string(id) }
