package rows

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumnsAreLeftOutInTheirPlaces(t *testing.T) {
	t.Parallel()
	const all = "a.id,\n\ta.note,\n\ta.notes, coalesce(a.b, '[]')"
	require.Equal(t, "a.id, NULL::jsonb,\n\ta.notes, coalesce(a.b, '[]')", Without(all, "a.note"))
	require.Equal(t, all, Without(all))
	require.Panics(t, func() { Without(all, "a.b") })
}
