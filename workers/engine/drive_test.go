package engine

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/panics"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

func TestAStepThatPanicsIsLoggedOnceWithItsStack(t *testing.T) {
	t.Parallel()
	log := new(bytes.Buffer)
	c := &Context{Op: &queue.Held{}, Log: slog.New(slog.NewTextHandler(log, nil)).With("correlation_id", "planted-1")}
	err := c.guarded(t.Context()) // it has no engine, so that its first step into the database panics
	require.ErrorIs(t, err, panics.ErrPanicked)
	require.NotContains(t, err.Error(), "nil pointer", "what it was is for the log")
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	require.Contains(t, log.String(), "drive.go")
	require.Contains(t, log.String(), "correlation_id=planted-1")
}
