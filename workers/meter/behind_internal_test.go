package meter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/spending"
)

// What a budget can be passed by counts on usage being read from adapters within the time that the books may be behind.
func TestUsageIsReadWithinWhatTheBooksMayBeBehind(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, pullAgain+pullEvery+jobTimeout, spending.Behind)
}
