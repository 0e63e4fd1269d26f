package cli_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/cli"
	"github.com/gpuaas/app-platform/sdk/logincode"
)

// browse runs a login whose browser brings back what the test says.
func (r *rig) browse(t *testing.T, bring func(port, challenge string) string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Main(t.Context(), cli.Environment{
		Getenv: func(name string) string { return r.env[name] }, Stdin: strings.NewReader(""), Stdout: &stdout,
		Stderr: &stderr, ConfigPath: r.config(),
		Browse: func(address string) error {
			shown, err := url.Parse(address)
			require.NoError(t, err)
			require.Equal(t, "/auth/oidc/start", shown.Path)
			port := shown.Query().Get("cli")
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://127.0.0.1:"+port+bring(port, shown.Query().Get("challenge")), nil)
			require.NoError(t, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, response.StatusCode)
			return response.Body.Close()
		},
	}, []string{"login", "--browser"})
	return result{stdout.String(), stderr.String(), code}
}

func TestALoginInTheBrowserEndsAtTheCommandLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	delete(r.env, "APPCTL_TOKEN")
	r.HandleLogin(func(code string) (string, time.Time, error) {
		require.Equal(t, "gpu_lnk_once", code)
		return "gpu_ses_test", time.Now().Add(time.Hour), nil
	})
	var challenge string
	got := r.browse(t, func(_, shown string) string { challenge = shown; return "/?code=gpu_lnk_once" })
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "logged in to")
	raw, err := base64.RawURLEncoding.DecodeString(challenge)
	require.NoError(t, err)
	require.Len(t, raw, sha256.Size)
	require.Contains(t, got.stderr, "code: "+logincode.Of(challenge)+"\n", "the person compares it with the page")
	got = r.run(t.Context(), "", "whoami")
	require.Zero(t, got.code, got.stderr)
}

func TestARefusedLoginInTheBrowserIsToldAtTheCommandLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.browse(t, func(_, _ string) string { return "/?error=LOGIN_REFUSED&correlation_id=c" })
	require.Equal(t, 4, got.code, got.stderr)
	require.Contains(t, got.stderr, "LOGIN_REFUSED")
}
