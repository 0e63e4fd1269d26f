package authhttp_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACommandLineLogsInThroughTheBrowserWithWhatItAloneKnows(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	person := o.kit.User(nil)
	o.people.add("s", person.Email, true)
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	ended := o.browser().agree("s", 4711, base64.RawURLEncoding.EncodeToString(sum[:]))
	address, err := url.Parse(ended.Header.Get("Location"))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:4711", address.Host)
	code := address.Query().Get("code")
	require.Zero(t, o.kit.Count("session", ""))
	redeem := func(verifier string) (*http.Response, string) {
		return o.post("/auth/login", fmt.Sprintf(`{"code":%q,"client":"cli","verifier":%q}`, code, verifier))
	}
	response, _ := redeem(strings.Repeat("w", 43))
	require.Equal(t, 401, response.StatusCode, "who intercepts the code has not the verifier")
	response, body := o.post("/auth/login", fmt.Sprintf(`{"code":%q,"client":"cli"}`, code))
	require.Equal(t, 403, response.StatusCode, body)
	response, body = redeem(verifier)
	require.Equal(t, 200, response.StatusCode, body)
	var session struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(body), &session))
	viewer, err := o.identity.Viewer(o.kit.With(session.Token))
	require.NoError(t, err)
	require.Equal(t, string(person.ID), viewer.Actor.ID)
	require.Equal(t, 1, o.kit.Count("session", "method = 'oidc'"))
	response, _ = redeem(verifier)
	require.Equal(t, 401, response.StatusCode, "a code works once")
	ended = o.browser().agree("nobody", 4711, strings.Repeat("a", 43))
	require.NotEqual(t, "127.0.0.1:4711", ended.Request.URL.Host)
}
