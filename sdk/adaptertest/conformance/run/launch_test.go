package run

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACommandIsKilledWithAllItStarted(t *testing.T) {
	t.Parallel()
	c := &Command{
		Line:     `echo "up as $ADAPTER_NAME at $ADAPTER_LISTEN"; sleep 600 & wait`,
		Name:     "n",
		StateDir: t.TempDir(),
	}
	url, err := c.Start(t.Context(), "http://platform")
	require.NoError(t, err)
	require.Eventually(
		t,
		func() bool { return strings.Contains(c.Output(), "up as n at "+strings.TrimPrefix(url, "http://")) },
		10*time.Second,
		5*time.Millisecond,
	)
	_, err = c.Start(t.Context(), "http://platform")
	require.ErrorContains(t, err, "already started")
	require.NoError(t, c.Kill())
	require.NoError(t, c.Kill())
	again, err := c.Start(t.Context(), "http://platform")
	require.NoError(t, err)
	require.Equal(t, url, again, "it comes back where it was")
	require.NoError(t, c.Kill())
}
