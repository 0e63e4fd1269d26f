package oci

import (
	"encoding/json"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// freePort returns a port of this machine that no program listens at. Members share the machine's network here, and
// suites that run beside each other must not want the same port: it is chosen long before it is listened at.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
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
