package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestATokenOpensWhatItsRoleMay: that of agents signs a node in and gives no bootstrap; nothing is given without one.
func TestATokenOpensWhatItsRoleMay(t *testing.T) {
	s := &supervisor{settings: settings{role: "server", values: map[string][]string{
		"token": {"K10abc::server:of-servers"}, "agent-token": {"of-agents"}}}}
	for _, one := range []struct {
		role, user, password string
		code                 int
	}{
		{"node", "node", "of-agents", http.StatusOK},
		{"node", "server", "of-servers", http.StatusOK},
		{"server", "server", "of-servers", http.StatusOK},
		{"server", "node", "of-agents", http.StatusForbidden},
		{"node", "node", "of-servers", http.StatusUnauthorized},
		{"server", "server", "of-agents", http.StatusUnauthorized},
		{"node", "admin", "of-agents", http.StatusUnauthorized},
		{"node", "", "", http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(one.user, one.password)
		w := httptest.NewRecorder()
		s.only(one.role, func(http.ResponseWriter, *http.Request) {})(w, r)
		if w.Code != one.code {
			t.Errorf("%+v: %d", one, w.Code)
		}
	}
}
