package adapter

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/journal"
	"github.com/gpuaas/app-platform/sdk/adapter/operation"
)

// age rewrites the only record of an ended operation as if it had been written long ago.
func age(t *testing.T, dir, id string) {
	t.Helper()
	path := dir + "/operations/" + id + ".jsonl"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var rec journal.Record
	require.NoError(t, json.Unmarshal(raw, &rec), "an ended operation has one record")
	rec.At = rec.At.Add(-operation.DefaultRetention - time.Hour)
	raw, err = json.Marshal(rec)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(raw, '\n'), 0o600))
}

func TestOldOperationsAreForgottenButNotWhatIsKnownOfALiveInstance(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t), t.TempDir()
	kit, err := New(l.config(dir, demoApp()))
	require.NoError(t, err)
	require.NoError(t, kit.Start(context.Background()))
	server := httptest.NewServer(kit.Handler())
	t.Cleanup(server.Close)
	live := l.dispatchOf("op_live", InstanceCreate)
	live.Instance.ID = "ins_live"
	gone := l.dispatchOf("op_gone", InstanceDecommission)
	for _, d := range []Dispatch{l.dispatchOf("op_old", InstanceCreate), gone, live} {
		l.dispatch(server.URL, d, http.StatusAccepted)
		l.ends(server.URL, d.OperationID, StateSucceeded)
	}
	kit.Stop()
	for _, id := range []string{"op_old", "op_gone", "op_live"} {
		age(t, dir, id)
	}

	base, _ := startKit(t, l, l.config(dir, demoApp()))
	for id, want := range map[string]int{"op_old": http.StatusNotFound, "op_gone": http.StatusNotFound,
		"op_live": http.StatusOK} {
		code, _ := l.call(base, http.MethodGet, OperationPath(id), nil)
		require.Equal(t, want, code, id)
	}
	code, _ := l.call(base, http.MethodGet, InstancePath("ins_live"), nil, HeaderPlatformToken, "tok-9")
	require.Equal(t, http.StatusOK, code, "an instance that exists can be observed however old it is")
	_, err = os.Stat(dir + "/operations/op_old.jsonl")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestStoppedKitAnswersThatItIsUnavailable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	kit, err := New(l.config(t.TempDir(), demoApp()))
	require.NoError(t, err)
	server := httptest.NewServer(kit.Handler())
	t.Cleanup(server.Close)
	code, body := l.call(server.URL, http.MethodPut, OperationPath("op_1"), l.dispatchOf("op_1", InstanceCreate))
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.True(t, errorOf(t, body).Retryable)
}
