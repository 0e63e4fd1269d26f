package operation_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestTheChangeIsShownWithoutThePlatformsPart(t *testing.T) {
	t.Parallel()
	stored, err := operation.WithPrivate(map[string]any{"labels": map[string]string{"a": "b"}},
		operation.Private{KeepFailed: true})
	require.NoError(t, err)
	require.Contains(t, string(stored), "keepFailed")
	shown := (&operation.View{Operation: &db.Operation{DesiredChange: stored}}).PublicChange()
	require.JSONEq(t, `{"labels":{"a":"b"}}`, string(shown))
	require.Equal(t, json.RawMessage(`{"x":1}`),
		(&operation.View{Operation: &db.Operation{DesiredChange: json.RawMessage(`{"x":1}`)}}).PublicChange())
}
