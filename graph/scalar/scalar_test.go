package scalar

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

func TestAnInstantIsReadInUTCWithTheMicrosecondsThatAreStored(t *testing.T) {
	t.Parallel()
	got, err := UnmarshalDateTime("2026-01-31T12:00:00.123456789+02:00")
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 1, 31, 10, 0, 0, 123_456_000, time.UTC), got)
}

func TestWhatIsNoInstantIsRefusedAsTheCallersMistake(t *testing.T) {
	t.Parallel()
	for _, given := range []any{"yesterday", "2026-01-31", "", 7, nil, true, strings.Repeat("x", 10_000)} {
		_, err := UnmarshalDateTime(given)
		require.True(t, fault.Is(err, fault.InvalidArgument), "%v: %v", given, err)
		require.ErrorContains(t, err, "in RFC 3339, such as 2026-01-31T12:00:00Z")
		require.Less(t, len(err.Error()), 200)
	}
}
