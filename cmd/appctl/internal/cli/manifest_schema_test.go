package cli_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSchemaOfManifestsIsPrintedAsThePlatformGivesIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		body, says string
	}{
		"as it is":  {http.StatusOK, "{\n  \"title\": \"App manifest\"\n}\n", ""},
		"not there": {http.StatusNotFound, "", "404"},
		"a page":    {http.StatusOK, "<html>", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
				if req.URL.Path != "/schemas/manifest.v1.json" {
					return false
				}
				require.Empty(t, req.Header.Get("Authorization"), "no credential goes with it")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
				return true
			})
			got := r.run(t.Context(), "", "manifest", "schema")
			if c.says == "" {
				require.Zero(t, got.code, got.stderr)
				require.Equal(t, c.body, got.stdout)
				return
			}
			require.NotZero(t, got.code)
			require.Contains(t, got.stderr, c.says)
			require.Empty(t, got.stdout)
		})
	}
}
