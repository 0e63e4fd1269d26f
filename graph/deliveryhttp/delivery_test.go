package deliveryhttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestANodeFetchesWhatItsTaskIsFor(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open := h.open()
	require.Equal(t, h.task.ID, open.TaskID)
	require.Equal(t, h.artifact.Digest, open.Digest)
	require.Equal(t, lifecycle.ArtifactOCI, open.Kind)
	require.Equal(t, h.URL, open.URL)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), open.ExpiresAt, time.Minute)
	require.Len(t, open.Parts, 2)
	require.Equal(t, []string{platformtest.Digest(h.manifest), platformtest.Digest(h.layer)},
		[]string{open.Parts[0].Digest, open.Parts[1].Digest})
	require.Equal(t, 1, h.Count("audit_entry",
		"action = 'openArtifactDelivery' AND allowed AND object_id = $1 AND actor_id = $2 AND tenant_id = $3",
		h.task.ID, h.node.ID, h.tenant.ID))

	for _, data := range [][]byte{h.manifest, h.layer} {
		digest := platformtest.Digest(data)
		response, body := h.get(digest, open.Token)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
		require.Equal(t, digest, platformtest.Digest(body))
		require.Equal(t, strconv.Itoa(len(data)), response.Header.Get("Content-Length"))
		require.Equal(t, `"`+digest+`"`, response.Header.Get("ETag"))
		require.Equal(t, digest, response.Header.Get("Docker-Content-Digest"))
		require.Equal(t, "application/x-test", response.Header.Get("Content-Type"))
		require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
		require.NotEmpty(t, response.Header.Get("X-Correlation-ID"))
	}
	counted := func() bool { return h.Stats.Parts.Load() == 2 && h.Stats.UnderWay.Load() == 0 }
	require.Eventually(t, counted, 10*time.Second, time.Millisecond,
		"the node may have the last byte before it is counted")
	require.Equal(t, int64(len(h.manifest)+len(h.layer)), h.Stats.Bytes.Load())

	asked := len(h.registry.asked)
	response := h.ask(http.MethodHead, platformtest.Digest(h.layer), open.Token)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, int64(len(h.layer)), response.ContentLength)
	require.Len(t, h.registry.asked, asked, "the platform knows by itself how long a part is")
}

func TestOneRangeOfAPartIsServed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	grant, digest, size := h.open().Token, platformtest.Digest(h.layer), len(h.layer)
	for asked, want := range map[string][2]int{
		"bytes=0-": {0, size}, "bytes=1000-": {1000, size}, "bytes=5-9": {5, 10}, "bytes=-3": {size - 3, size},
		"bytes=-99999999": {0, size}, "bytes=7-99999999": {7, size},
		"bytes=" + strconv.Itoa(size-1) + "-": {size - 1, size},
	} {
		response, body := h.get(digest, grant, "Range", asked)
		require.Equal(t, http.StatusPartialContent, response.StatusCode, asked)
		require.Equal(t, h.layer[want[0]:want[1]], body, asked)
		require.Equal(t, "bytes "+strconv.Itoa(want[0])+"-"+strconv.Itoa(want[1]-1)+"/"+strconv.Itoa(size),
			response.Header.Get("Content-Range"), asked)
	}
	response, body := h.get(platformtest.Digest(h.manifest), grant, "Range", "bytes=4-")
	require.Equal(t, http.StatusPartialContent, response.StatusCode)
	require.Equal(t, h.manifest[4:], body)
	response, body = h.get(digest, grant, "Range", "bytes=5-", "If-Range", `"sha256:other"`)
	require.Equal(t, http.StatusOK, response.StatusCode, "a piece of something else")
	require.Len(t, body, size)
	for _, wrong := range []string{
		"bytes=" + strconv.Itoa(size) + "-", "bytes=9-5", "bytes=", "bytes=-", "bytes=-0", "bytes=a-b", "bytes=1-2,4-5",
		"lines=1-2", "bytes=--1",
		"bytes=+1-", "bytes=99999999999999999999-",
	} {
		response := h.ask(http.MethodGet, digest, grant, "Range", wrong)
		h.denied(response, http.StatusRequestedRangeNotSatisfiable, "INVALID_ARGUMENT")
		require.Equal(t, "bytes */"+strconv.Itoa(size), response.Header.Get("Content-Range"), wrong)
	}
}

func TestADeliveryIsOpenedForTheCallersOwnOpenFetchAlone(t *testing.T) {
	t.Parallel()
	h := setup(t)
	_, stranger := h.Node(1)
	_, err := h.Open(h.With(stranger), h.task.ID)
	require.True(t, fault.Is(err, fault.NotFound), "another node's: %v", err)
	_, err = h.Open(h.agent, ids.New(ids.NodeTask))
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	_, err = h.Open(h.As(h.Operator()), h.task.ID)
	require.True(t, fault.Is(err, fault.Forbidden), "the platform's staff is no node: %v", err)
	_, err = h.Open(h.agent, h.running(lifecycle.TaskRun, []byte(`{"command":["true"]}`)).ID)
	h.refused(err, fault.FailedPrecondition)
	_, err = h.Open(h.agent, h.fetching(h.Artifact(lifecycle.StageActive).Digest).ID)
	h.refused(err, fault.NotFound)

	h.SQL(`UPDATE artifact SET quarantined_at = now(), quarantine_reason = 'it bites' WHERE id = $1`, h.artifact.ID)
	_, err = h.Open(h.agent, h.task.ID)
	h.refused(err, fault.ArtifactQuarantined)
	h.SQL(`UPDATE artifact SET quarantined_at = NULL WHERE id = $1`, h.artifact.ID)
	h.Policy(h.project, `{"artifactSources": {"deny": ["127.0.0.1"]}}`)
	_, err = h.Open(h.agent, h.task.ID)
	h.refused(err, fault.PolicyDenied)
	h.Policy(h.project, `{}`)
	h.SQL(`DELETE FROM artifact_part WHERE artifact_id = $1`, h.artifact.ID)
	_, err = h.Open(h.agent, h.task.ID)
	h.refused(err, fault.ArtifactUnavailable)
	h.SQL(`UPDATE artifact SET stage = 'DEPRECATED' WHERE id = $1`, h.artifact.ID)
	h.SQL(`UPDATE artifact SET stage = 'RETIRED' WHERE id = $1`, h.artifact.ID)
	_, err = h.Open(h.agent, h.task.ID)
	h.refused(err, fault.NotFound)
	h.SQL(`UPDATE node_task SET state = 'FAILED', ended_at = now() WHERE id = $1`, h.task.ID)
	_, err = h.Open(h.agent, h.task.ID)
	h.refused(err, fault.Conflict)
	require.Zero(t, h.Count("audit_entry", "action = 'openArtifactDelivery' AND allowed"))
}

// refused wants a code at the task's id.
func (h *house) refused(err error, code fault.Code) {
	h.t.Helper()
	found, ok := fault.As(err)
	require.True(h.t, ok, "%v", err)
	require.Equal(h.t, code, found.Code, "%v", err)
	require.NotEmpty(h.t, found.Reasons, "%v", err)
	require.Equal(h.t, "taskId", found.Reasons[0].Path, "%v", err)
}

func TestAPartNeedsATokenThatStillHolds(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open, digest := h.open(), platformtest.Digest(h.layer)
	_, nodes := h.Node(1)
	api := h.OperationToken(h.Operation(h.instance, lifecycle.InstanceCreate, lifecycle.OperationRunning))
	for name, text := range map[string]string{"none": "", "a node's credential": nodes, "one for the API": api,
		"another": "x.y.z"} {
		response := h.ask(http.MethodGet, digest, text)
		require.Equal(t, "Bearer", response.Header.Get("WWW-Authenticate"), name)
		h.denied(response, http.StatusUnauthorized, "UNAUTHENTICATED")
	}
	grant := token.Delivery{Task: h.task.ID, Node: h.node.ID, Artifact: h.artifact.ID,
		ExpiresAt: time.Now().Add(-time.Second)}
	over, err := h.Ring.SignDelivery(grant, time.Now().Add(-time.Minute))
	require.NoError(t, err)
	h.denied(h.ask(http.MethodGet, digest, over), http.StatusUnauthorized, "TOKEN_EXPIRED")
	grant.ExpiresAt = time.Now().Add(time.Minute)
	grant.Node = ids.New(ids.Node)
	foreign, err := h.Ring.SignDelivery(grant, time.Now())
	require.NoError(t, err)
	h.denied(h.ask(http.MethodGet, digest, foreign), http.StatusUnauthorized, "UNAUTHENTICATED")

	h.denied(h.ask(http.MethodGet, platformtest.Digest([]byte("no part of it")), open.Token), http.StatusNotFound,
		"NOT_FOUND")
	h.denied(h.ask(http.MethodGet, "sha256:abc", open.Token), http.StatusNotFound, "NOT_FOUND")
	h.denied(h.ask(http.MethodGet, "", open.Token), http.StatusNotFound, "NOT_FOUND")
	response := h.ask(http.MethodPost, digest, open.Token)
	require.Equal(t, "GET, HEAD", response.Header.Get("Allow"))
	h.denied(response, http.StatusMethodNotAllowed, "REQUEST_INVALID")

	h.SQL(`UPDATE artifact SET quarantined_at = now(), quarantine_reason = 'it bites' WHERE id = $1`, h.artifact.ID)
	h.denied(h.ask(http.MethodGet, digest, open.Token), http.StatusPreconditionFailed, "ARTIFACT_QUARANTINED")
	h.SQL(`UPDATE artifact SET quarantined_at = NULL WHERE id = $1`, h.artifact.ID)
	h.SQL(`UPDATE artifact_source SET disabled_at = now() WHERE id = $1`, h.source.ID)
	h.denied(h.ask(http.MethodGet, digest, open.Token), http.StatusUnprocessableEntity, "SOURCE_UNKNOWN")
	h.SQL(`UPDATE artifact_source SET disabled_at = NULL WHERE id = $1`, h.source.ID)
	h.SQL(`INSERT INTO node_credential (id, node_id, secret_hash, expires_at, created_at)
		SELECT 'crd_next', node_id, 'x', expires_at, now() FROM node_credential WHERE node_id = $1`, h.node.ID)
	h.SQL(`UPDATE node_credential SET revoked_at = now() WHERE node_id = $1 AND id <> 'crd_next'`, h.node.ID)
	// it was opened with the one that ended
	h.denied(h.ask(http.MethodGet, digest, open.Token), http.StatusUnauthorized, "UNAUTHENTICATED")
	h.SQL(`UPDATE node_credential SET revoked_at = NULL WHERE node_id = $1`, h.node.ID)
	h.SQL(`UPDATE node_task SET state = 'FAILED', ended_at = now() WHERE id = $1`, h.task.ID)
	h.denied(h.ask(http.MethodGet, digest, open.Token), http.StatusConflict, "CONFLICT")
	require.Empty(t, h.registry.asked, "the source hears of none of this")
	require.Zero(t, h.Stats.Bytes.Load())
}

func TestASourceThatBreaksOffCutsTheAnswerAndARangeGoesOn(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open, digest := h.open(), platformtest.Digest(h.layer)
	h.registry.set(func() { h.registry.breakAt = 700_000 })
	response := h.ask(http.MethodGet, digest, open.Token)
	require.Equal(t, http.StatusOK, response.StatusCode)
	had, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a client must see that it is short")
	require.Less(t, len(had), len(h.layer))
	require.Eventually(t, func() bool { return h.Stats.Broken.Load() == 1 && h.Stats.UnderWay.Load() == 0 },
		10*time.Second, time.Millisecond)
	h.registry.set(func() { h.registry.breakAt = 0 })
	response, rest := h.get(digest, open.Token, "Range", "bytes="+strconv.Itoa(len(had))+"-")
	require.Equal(t, http.StatusPartialContent, response.StatusCode)
	require.Equal(t, digest, platformtest.Digest(append(had, rest...)))
}

func TestASourceThatHasOtherBytesIsFoundOutBeforeAnyLeave(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open, manifest, layer := h.open(), platformtest.Digest(h.manifest), platformtest.Digest(h.layer)
	h.registry.set(func() {
		h.registry.has[manifest] = append([]byte(" "), h.manifest[1:]...)
		h.registry.has[layer] = h.layer[1:]
	})
	h.denied(h.ask(http.MethodGet, manifest, open.Token), http.StatusUnprocessableEntity, "DIGEST_MISMATCH")
	h.denied(h.ask(http.MethodGet, layer, open.Token), http.StatusUnprocessableEntity, "DIGEST_MISMATCH")
	h.registry.set(func() { delete(h.registry.has, layer) })
	h.denied(h.ask(http.MethodGet, layer, open.Token), http.StatusUnprocessableEntity, "ARTIFACT_UNAVAILABLE")
	h.registry.set(func() { h.registry.down = true })
	response := h.ask(http.MethodGet, layer, open.Token)
	require.Equal(t, "2", response.Header.Get("Retry-After"))
	h.denied(response, http.StatusServiceUnavailable, "UNAVAILABLE")
	require.Zero(t, h.Stats.Bytes.Load())
}

func TestAChangedCredentialCountsAtOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open, layer := h.open(), platformtest.Digest(h.layer)
	response, _ := h.get(layer, open.Token)
	require.Equal(t, http.StatusOK, response.StatusCode)
	h.registry.set(func() { h.registry.password = "another" })
	h.denied(h.ask(http.MethodGet, layer, open.Token), http.StatusServiceUnavailable, "UNAVAILABLE")
	h.credential("another")
	response, _ = h.get(layer, open.Token)
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestANodeFetchesABoundedNumberOfPartsAtOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open, layer := h.open(), platformtest.Digest(h.layer)
	hold := make(chan struct{})
	h.registry.set(func() { h.registry.hold = hold })
	var under []*http.Response
	for range 8 {
		response := h.ask(http.MethodGet, layer, open.Token)
		require.Equal(t, http.StatusOK, response.StatusCode)
		under = append(under, response)
	}
	require.Equal(t, int64(8), h.Stats.UnderWay.Load())
	response := h.ask(http.MethodGet, layer, open.Token)
	require.Equal(t, "2", response.Header.Get("Retry-After"))
	h.denied(response, http.StatusTooManyRequests, "RATE_LIMITED")
	close(hold)
	for _, response := range under {
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Len(t, data, len(h.layer))
	}
	require.Eventually(t, func() bool { return h.Stats.UnderWay.Load() == 0 }, 10*time.Second, time.Millisecond)
	response, _ = h.get(layer, open.Token)
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestASourceThatTheOperatorDoesNotAllowIsNotNamed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open := h.open()
	h.Service.Reach.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, fault.New(fault.DialRefused, "the operator does not allow artifact sources at %s",
			h.registry.host())
	}
	h.denied(h.ask(http.MethodGet, platformtest.Digest(h.layer), open.Token), http.StatusUnprocessableEntity,
		"DIAL_REFUSED")
}

func TestAFileIsDeliveredWithoutARegistry(t *testing.T) {
	t.Parallel()
	h := setup(t)
	digest := platformtest.Digest(h.layer)
	h.SQL(`UPDATE artifact_source SET kind = 'HTTPS', location = $2 WHERE id = $1`, h.source.ID,
		"https://"+h.registry.host()+"/")
	h.SQL(`UPDATE artifact SET ref = $2, kind = 'BLOB' WHERE id = $1`, h.artifact.ID,
		"https://"+h.registry.host()+"/files/"+digest)
	h.SQL(`UPDATE artifact_part SET role = 'BLOB' WHERE artifact_id = $1`, h.artifact.ID)
	response, data := h.get(digest, h.open().Token, "Range", "bytes=10-")
	require.Equal(t, http.StatusPartialContent, response.StatusCode, "%s", data)
	require.Equal(t, h.layer[10:], data)
}
