package workers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// What a verb accepted is held against the pinned manifest's schema again before it is sent; a teardown is sent
// whatever the config is.
func TestAConfigThatDoesNotFitIsNeverSentAndStillTornDown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var sent atomic.Int32
	adapter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			sent.Add(1)
		}
		http.Error(w, `{"code":"UNAVAILABLE","message":"not now"}`, http.StatusServiceUnavailable)
	}))
	t.Cleanup(adapter.Close)
	w := l.world("strict", adapter.URL)
	before := l.own.Manifest.GetX(t.Context(), w.manifest)
	w.manifest = ids.New(ids.Manifest)
	document := strings.Replace(demo, `"configSchema":{"type":"object"}`,
		`"configSchema":{"type":"object","properties":{"a":{"type":"string"}}}`, 1)
	l.own.Manifest.Create().SetID(w.manifest).SetAppID(before.AppID).SetAppSlug(before.AppSlug).SetVersion("1.1.0").
		SetStage(lifecycle.StageStaged).
		SetDigest("sha256:1").SetDocument([]byte(document)).SetAdapterName("strict").SaveX(t.Context())
	it := l.launch(w, time.Minute) // its config has a number at "a"
	l.work()
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationFailed, op.State)
	require.Equal(t, string(fault.ConfigInvalid), op.ErrorCode)
	require.Contains(t, op.ErrorMessage, "config.a")
	require.Zero(t, sent.Load())
	l.decommission(it, time.Minute)
	l.until("the decommission is sent", func() bool { return sent.Load() > 0 })
}
