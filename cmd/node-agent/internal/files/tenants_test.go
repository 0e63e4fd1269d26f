package files_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/files"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

func TestATenantsRequestsLeavePlacesForOthers(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.spec.Tenant = "ten_a"
	var open []net.Conn
	for range files.MaxRequests / 2 {
		conn, err := g.stream()
		require.NoError(t, err)
		open = append(open, conn)
	}
	_, err := g.stream()
	var refused *tunnel.Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, tunnel.Busy, refused.Code)
	require.Contains(t, refused.Message, "as this tenant may have")
	g.spec.Tenant = "ten_b"
	response, _ := g.do(http.MethodGet, "", nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	g.spec.Tenant = "ten_a"
	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	for range files.MaxRequests { // one after the other, each as soon as the one before is closed
		conn, err := g.stream()
		require.NoError(t, err, "a request waits for what has ended")
		require.NoError(t, conn.Close())
	}
}
