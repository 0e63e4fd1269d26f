package queries

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnswersThatDifferAreNoticed(t *testing.T) {
	t.Parallel()
	require.NoError(t, same([]byte(`{"a": 1, "b": [2]}`), []byte(`{"b":[2],"a":1}`)))
	require.ErrorContains(t, same([]byte(`{"a":1}`), []byte(`{"a":2}`)), "differ")
	require.Error(t, same([]byte(`{`), []byte(`{}`)))
}

func TestRowsOfADerivedSchemaAreComparedWithoutTheirForm(t *testing.T) {
	t.Parallel()
	mine := `{"steps": [{"attempt": 1, "at": "2026-01-01T00:00:00.000000Z"}],
		"edges": [{"cursor": "a", "node": {"id": "x"}}]}`
	other := `{"steps": {"nodes": [{"attempt": "1", "at": "2026-01-01T01:00:00+01:00"}]},
		"edges": [{"cursor": "b", "node": {"id": %q}}]}`
	require.NoError(t, sameRows([]byte(mine), fmt.Appendf(nil, other, "x")))
	require.ErrorContains(t, sameRows([]byte(mine), fmt.Appendf(nil, other, "y")), "the rows differ")
	require.ErrorContains(t, sameRows([]byte(mine), []byte(`{"errors": []}`)), "the rows differ")
}
