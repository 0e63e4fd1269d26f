package authhttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/service/identity"
)

func TestTheMethodsAreTold(t *testing.T) {
	t.Parallel()
	o, local := withProvider(t), newBench(t)
	for address, want := range map[string]string{
		o.URL: `{"link":false,"oidc":{"name":"Example"}}`, local.URL: `{"link":true,"oidc":null}`,
	} {
		response, body := o.browser().get(address + "/auth/methods")
		require.Equal(t, 200, response.StatusCode)
		require.JSONEq(t, want, body)
	}
	ended, _ := o.browser().get(local.URL + "/auth/oidc/start")
	require.Contains(t, ended.Header.Get("Location"), "/login?correlation_id=")
	require.Contains(t, ended.Header.Get("Location"), "error=FAILED_PRECONDITION")
	link, err := (&identity.Service{DB: o.kit.DB, DevLogins: true}).CreateLoginLink(o.kit.As(o.kit.Operator()),
		o.kit.User(nil).ID)
	require.NoError(t, err)
	response, body := o.post("/auth/login", fmt.Sprintf(`{"code":%q,"client":"cli"}`, link.Code))
	require.Equal(t, 403, response.StatusCode)
	require.Contains(t, body, `"code":"LOGIN_REFUSED"`, "links are for development alone")
}
