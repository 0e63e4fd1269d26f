package oci

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// freePort returns a port of this machine that no program listens at. Members share the machine's network here, and
// suites that run beside each other must not want the same port, which is chosen long before it is listened at. It is
// below those that the kernel gives to outgoing connections.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		port := strconv.Itoa(18000 + rand.IntN(12000))
		if listener, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
}

// modelProfile is the profile of the model server's own manifest.
func modelProfile(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../testimages/model-server/manifest.json")
	require.NoError(t, err)
	var document struct{ RuntimeProfile json.RawMessage }
	require.NoError(t, json.Unmarshal(raw, &document))
	return string(document.RuntimeProfile)
}
