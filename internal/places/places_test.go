package places

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlacesAreBoundedByKeyAndGivenBackOnce(t *testing.T) {
	t.Parallel()
	var c Counter[string]
	first, ok := c.Take("a", 2)
	require.True(t, ok)
	second, ok := c.Take("a", 2)
	require.True(t, ok)
	leave, ok := c.Take("a", 2)
	require.False(t, ok)
	require.Nil(t, leave)
	other, ok := c.Take("b", 2)
	require.True(t, ok, "another key has places of its own")
	first()
	first()
	third, ok := c.Take("a", 2)
	require.True(t, ok)
	_, ok = c.Take("a", 2)
	require.False(t, ok, "a place that is given back twice is one place")
	second()
	third()
	other()
	require.Empty(t, c.open, "a key with nothing open is not kept")
}
