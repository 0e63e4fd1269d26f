package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestWhatIsNewerIsToldSooner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase, message, failedTry bool
		want                      time.Duration
	}{
		{phase: true, message: true, want: 50 * time.Millisecond}, {phase: true, want: 50 * time.Millisecond},
		{message: true, want: 250 * time.Millisecond}, {want: time.Second},
		{phase: true, message: true, failedTry: true, want: time.Second},
		{message: true, failedTry: true, want: time.Second},
	} {
		require.Equal(t, c.want, lifecycle.Pause(c.phase, c.message, c.failedTry), "%+v", c)
	}
}
