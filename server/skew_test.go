package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestAServerWhoseClockIsOffDoesNotServeAndStopsWhenItTurnsOff(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	var by atomic.Int64
	config := Defaults()
	config.DatabaseURL, config.PublicURL, config.Listen = kit.DSN, "http://127.0.0.1:1", []string{"127.0.0.1:0"}
	config.Dev, config.KeysDir, config.Edge.MetricsListen = true, t.TempDir(), []string{"127.0.0.1:0"}
	config.Clock = func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
	log := slog.New(slog.DiscardHandler)

	by.Store(int64(-3 * time.Second))
	_, err := Open(t.Context(), config, log)
	require.ErrorIs(t, err, tx.ErrSkew)
	require.ErrorContains(t, err, "NTP")

	by.Store(0)
	opened, err := Open(t.Context(), config, log)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- opened.Run(context.Background()) }()
	by.Store(int64(time.Minute))
	turned := time.Now()
	require.ErrorIs(t, <-ended, tx.ErrSkew)
	require.Less(t, time.Since(turned), 10*time.Second)
}

// What does not end is work that hangs.
func TestAServerWhoseClockIsOffWaitsForNothing(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	database, err := tx.Open(t.Context(), kit.DSN, tx.Options{Connections: 1})
	require.NoError(t, err)
	p := &platform{db: database, log: slog.New(slog.DiscardHandler)}
	running, ctx := errgroup.WithContext(t.Context())
	running.Go(func() error { return fmt.Errorf("keep time: %w", tx.ErrSkew) })
	running.Go(func() error { <-hangs; return nil })
	began := time.Now()
	require.ErrorIs(t, p.await(ctx, running), tx.ErrSkew)
	require.GreaterOrEqual(t, time.Since(began), skewMost, "what runs gets its time to end in order")
}

func TestRequestsGetLessTimeWhenTheClockIsOff(t *testing.T) {
	t.Parallel()
	p := &platform{config: Defaults()}
	require.Equal(t, p.config.StopTimeout, p.stopWithin(context.Canceled))
	require.Equal(t, skewStop, p.stopWithin(errors.Join(errors.New("keep time"), tx.ErrSkew)))
}
