package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

func TestRequestsGetLessTimeWhenTheClockIsOff(t *testing.T) {
	t.Parallel()
	p := &platform{config: Defaults()}
	require.Equal(t, p.config.StopTimeout, p.stopWithin(context.Canceled))
	require.Equal(t, skewStop, p.stopWithin(errors.Join(errors.New("keep time"), tx.ErrSkew)))
}
