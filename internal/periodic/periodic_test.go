package periodic_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/periodic"
)

func TestWorkThatFailsOrPanicsIsTriedAgainUntilTheEnd(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	turns := 0
	err := periodic.Every(ctx, slog.New(slog.NewTextHandler(&out, nil)), "orphans", time.Millisecond,
		func(context.Context) error {
			turns++
			switch turns {
			case 1:
				return errors.New("the table is away")
			case 2:
				panic("a nil row")
			}
			stop()
			return ctx.Err()
		})
	require.NoError(t, err, "the end is not a failure")
	require.Equal(t, 3, turns)
	require.Contains(t, out.String(), "what=orphans error=\"the table is away\"")
	require.Contains(t, out.String(), "a nil row")
	require.NotContains(t, out.String(), context.Canceled.Error())
}
