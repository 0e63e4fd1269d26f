package authhttp_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/logincode"
)

// A program of another user of the machine opens the start of a login of its own in the browser of a person who is
// logged in at the provider: without the person's consent, which only a click on our own page gives, it gets nothing.
func TestNoProgramLogsInByOpeningAPageInAPersonsBrowser(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	person := o.kit.User(nil)
	o.people.add("s", person.Email, true)
	victim := o.browser()
	victim.login("s", "") // the browser has a session at the provider from here on
	bound := strings.Repeat("a", 43)
	shown, page := victim.get(o.URL + "/auth/oidc/start?cli=4711&challenge=" + bound)
	require.Equal(t, http.StatusOK, shown.StatusCode)
	require.Equal(t, "/auth/oidc/start", shown.Request.URL.Path, "it leads nowhere by itself")
	require.Contains(t, page, logincode.Of(bound))
	require.Equal(t, "same-origin", shown.Header.Get("Referrer-Policy"))
	require.Contains(t, shown.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	require.NotContains(t, page, "<script")
	form := url.Values{"cli": {"4711"}, "challenge": {bound}}
	for _, origin := range []string{"", "null", "https://evil.test", "http://127.0.0.1:4711"} {
		headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
		if origin != "" {
			headers = append(headers, "Origin", origin)
		}
		refused, body := o.post("/auth/oidc/start", form.Encode(), headers...)
		require.Equal(t, http.StatusForbidden, refused.StatusCode, "%s: %s", origin, body)
	}
	require.Zero(t, o.kit.Count("login_attempt", "return_to LIKE 'cli:%'"))
	require.Zero(t, o.kit.Count("login_code", ""))
	for _, wrong := range []string{"", "cli=80&challenge=" + bound, "cli=4711&challenge=short", "returnTo=/x"} {
		refused, _ := o.post("/auth/oidc/start", wrong, "Content-Type", "application/x-www-form-urlencoded",
			"Origin", o.URL, "Accept", "application/json")
		require.Equal(t, http.StatusBadRequest, refused.StatusCode, wrong)
	}
}
