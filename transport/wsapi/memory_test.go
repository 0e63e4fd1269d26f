package wsapi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListeningSocketTakesLittleMemory is not parallel: it weighs the whole process.
func TestListeningSocketTakesLittleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory would be weighed")
	}
	l := startFeed(t, 1000)
	defer l.close()
	require.Less(t, l.kib, 16.0, "KiB a socket with one subscription, stacks included")
	events := 20
	_, stats := l.round(t, events, l.burst)
	require.Equal(t, events*1000, stats.Messages)
}
