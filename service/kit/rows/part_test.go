package rows

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPartIsInTheOrderOfItsTable(t *testing.T) {
	t.Parallel()
	part := PartOf(OperationStepTable, Fields{"message": {"message"}, "order": {"state", "ordinal"}, "elsewhere": nil},
		"id", "state")
	require.Equal(t, "operation_step.id, operation_step.ordinal, operation_step.state, operation_step.message",
		part.Columns)
	require.PanicsWithValue(t, "no such columns: [messag]", func() {
		PartOf(OperationStepTable, Fields{"message": {"messag"}})
	})
}
