package panics_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/panics"
)

func TestAPanicIsAnErrorWithItsStackInTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	require.ErrorIs(t, panics.Caught(log, "orphans", func() error { panic("a nil row") }), panics.ErrPanicked)
	require.Contains(t, out.String(), "a nil row")
	require.Contains(t, out.String(), "panics_test.go")
	require.Contains(t, out.String(), "what=orphans")
}

func TestWorkThatDoesNotPanicReturnsItsError(t *testing.T) {
	t.Parallel()
	own := errors.New("its own")
	require.Equal(t, own, panics.Caught(slog.New(slog.DiscardHandler), "x", func() error { return own }))
	require.NoError(t, panics.Caught(slog.New(slog.DiscardHandler), "x", func() error { return nil }))
}
