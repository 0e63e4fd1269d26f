package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/transport/compress"
)

// fetch sends a request that accepts a coding, and returns the answer's coding with its body as it came.
func (b *bench) fetch(accept, token, path, document string, variables any) (coding string, body []byte) {
	b.t.Helper()
	request, err := http.NewRequest(http.MethodGet, b.url+path, nil)
	require.NoError(b.t, err)
	if document != "" {
		body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
		require.NoError(b.t, err)
		request, err = http.NewRequest(http.MethodPost, b.url+path, bytes.NewReader(body))
		require.NoError(b.t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept-Encoding", accept) // named by the caller, it is left to the caller to undo
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	body, err = io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response.Header.Get("Content-Encoding"), body
}

func TestCompressedAnswersAreTheSameAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	operator := b.Session(b.Operator())
	for path, document := range map[string]string{
		"/graphql": `{ permissionKeys { name description } }`, "/schemas/manifest.v1.json": "",
	} {
		coding, plain := b.fetch("identity", operator, path, document, nil)
		require.Empty(t, coding, path)
		coding, packed := b.fetch("gzip;q=0.9, br;q=0.1", operator, path, document, nil)
		require.Equal(t, "gzip", coding, path)
		unzip, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		body, err := io.ReadAll(unzip)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(body), path)
		coding, packed = b.fetch("gzip, deflate, br, zstd", operator, path, document, nil)
		require.Equal(t, "br", coding, path)
		body, err = io.ReadAll(brotli.NewReader(bytes.NewReader(packed)))
		require.NoError(t, err)
		require.Equal(t, string(plain), string(body), path)
	}
	require.Greater(t, len(manifest.DocumentSchema()), compress.MinBytes)
}

func TestAnAnswerWithACredentialIsNotCompressed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	i := b.intruder()
	b.Bind(i.person, platformtest.In(authz.ProjectAdmin, i.project))
	account, _, _ := i.account(i.session, "robot", "project.read")
	var ids strings.Builder // the answer is long, so that it would pay
	for n := range 40 {
		fmt.Fprintf(&ids, " i%d: id", n)
	}
	coding, body := b.fetch("gzip, br", i.session, graphqlPath,
		`mutation($input: CreateServiceAccountKeyInput!) { createServiceAccountKey(input: $input) { secret key {`+
			ids.String()+` } } }`, arguments{"input": object{"serviceAccountId": account}})
	require.Empty(t, coding)
	require.Contains(t, string(body), `"secret":"`)
	require.Greater(t, len(body), compress.MinBytes)
}
