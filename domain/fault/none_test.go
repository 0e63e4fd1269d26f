package fault

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFaultThatIsNilIsNotFound(t *testing.T) {
	t.Parallel()
	var none *Fault
	found, ok := As(fmt.Errorf("wrapped: %w", none))
	require.False(t, ok)
	require.Nil(t, found)
}
