package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportsShowNoTokens(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"token":"(token)"} and (token).`, HideTokens(`{"token":"gpu_op_ABC234"} and gpu_op_XYZ.`))
}
