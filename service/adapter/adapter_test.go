package adapter_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// describe answers for every adapter.
func describe(answer func(name, url string) (json.RawMessage,
	error)) func(context.Context, adapterclient.Target) (json.RawMessage, error) {
	return func(_ context.Context, target adapterclient.Target) (json.RawMessage, error) {
		return answer(target.Name, target.URL)
	}
}

func TestAnAdapterIsRegisteredWithWhatItSaysOfItselfAndMoves(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	operator := kit.As(kit.Operator())
	answer := func(name, url string) (json.RawMessage, error) {
		return json.RawMessage(`{"name": "` + name + `", "build": "` + url + `"}`), nil
	}
	verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(name, url string) (json.RawMessage, error) {
		return answer(name, url)
	})}
	made, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://127.0.0.1:8080/"})
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8080", made.URL)
	require.JSONEq(t, `{"name": "demo", "build": "http://127.0.0.1:8080"}`, string(made.Description))
	require.NotNil(t, made.LastSeenAt)
	require.Empty(t, made.LastError)

	kit.SQL(`UPDATE adapter SET feed_epoch = 'e', feed_cursor = '7'`)
	again, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://127.0.0.1:8080"})
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, "7", again.FeedCursor, "at the same address the feed goes on")
	answer = func(string, string) (json.RawMessage, error) {
		return nil, errors.New("dial tcp 10.0.0.1: secret detail")
	}
	moved, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://127.0.0.2:8080"})
	require.NoError(t, err)
	require.Equal(t, made.ID, moved.ID)
	require.Equal(t, "http://127.0.0.2:8080", moved.URL)
	require.Empty(t, moved.FeedEpoch+moved.FeedCursor)
	require.Equal(t, "the adapter cannot be reached", moved.LastError)
	require.NotEmpty(t, moved.Description, "what it said before stays")
	require.Equal(t, 1, kit.Count("adapter", ""))
	require.Equal(t, 3, kit.Count("audit_entry", "action = 'registerAdapter' AND allowed"))

	p, err := verbs.Adapters(operator, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, p.Rows, 1)
	one, err := verbs.Adapter(operator, made.ID)
	require.NoError(t, err)
	require.Equal(t, "demo", one.Name)
	_, err = verbs.Adapters(kit.As(kit.User(kit.Tenant(), platformtest.In(authz.ProjectAdmin,
		kit.Project(kit.Tenant())))),
		page.Args{First: 10})
	platformtest.Refused(t, err, fault.Forbidden)
}

func TestAnAdapterOfAnUnreadableDescriptionIsRegisteredWithTheReason(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	for said, says := range map[string]string{`[1]`: "not a JSON object", `{`: "not a JSON object"} {
		verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(string, string) (json.RawMessage, error) {
			return json.RawMessage(said), nil
		})}
		row, err := verbs.Register(kit.As(kit.Operator()), adapter.RegisterInput{Name: "demo",
			URL: "http://127.0.0.1:7001"})
		require.NoError(t, err)
		require.Contains(t, row.LastError, says)
		require.Empty(t, row.Description)
		require.Nil(t, row.LastSeenAt)
	}
}

func TestRegistrationIsRefusedBeforeAnybodyIsDialled(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	dialled := 0
	verbs := &adapter.Service{DB: kit.DB,
		Describe: describe(func(string, string) (json.RawMessage, error) {
			dialled++
			return json.RawMessage(`{}`), nil
		}),
		Allow: func(address *url.URL) error {
			if address.Hostname() == "127.0.0.1" {
				return nil
			}
			return fault.New(fault.DialRefused, "%s is not on the allow-list", address.Host)
		}}
	operator := kit.As(kit.Operator())
	_, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://169.254.169.254"})
	platformtest.Refused(t, err, fault.DialRefused, "input.url")
	for _, address := range []string{"", "ftp://one.test", "http://user:pass@one.test", "http://one.test?x=1",
		"http://one.test#x", "http://", "one.test"} {
		_, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: address})
		platformtest.Refused(t, err, fault.InvalidArgument, "input.url")
	}
	_, err = verbs.Register(operator, adapter.RegisterInput{Name: "Demo!", URL: "http://127.0.0.1:7001"})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.name")
	_, err = verbs.Register(kit.As(kit.User(nil, platformtest.OnPlatform(authz.AppPublisher))),
		adapter.RegisterInput{Name: "demo", URL: "http://127.0.0.1:7001"})
	platformtest.Refused(t, err, fault.Forbidden)
	require.Zero(t, dialled)
	require.Zero(t, kit.Count("adapter", ""))

	verbs.Describe = describe(func(string, string) (json.RawMessage, error) {
		return nil, fault.New(fault.DialRefused, "resolves to 127.0.0.1")
	})
	_, err = verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://127.0.0.1:7001"})
	platformtest.Refused(t, err, fault.DialRefused, "input.url")
	require.Zero(t, kit.Count("adapter", ""))
}

// authority is the certificate of a made-up authority.
func authority(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// Whoever holds an address, or is on the way to it, could answer as the adapter and collect the tokens of its
// instances: off this machine an adapter is registered by https with its authority, or not at all.
func TestAnAdapterOffThisMachineIsKnownByItsAuthority(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	var called []adapterclient.Target
	verbs := &adapter.Service{DB: kit.DB, Describe: func(_ context.Context,
		target adapterclient.Target) (json.RawMessage, error) {
		called = append(called, target)
		return json.RawMessage(`{}`), nil
	}}
	operator, pinned, none := kit.As(kit.Operator()), authority(t), ""
	for address, at := range map[string]string{
		"http://10.0.0.7:8443": "input.url", "http://adapter.test": "input.url",
		"http://localhost.evil.test": "input.url",
		"https://10.0.0.7:8443":      "input.authority", "https://adapter.test": "input.authority",
	} {
		_, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: address})
		platformtest.Refused(t, err, fault.AdapterInsecure, at)
		require.Contains(t, err.Error(), "authority", "the remedy is named")
	}
	key := "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	for _, text := range []string{"x", key, pinned + key, pinned + "x", strings.Repeat(pinned, 40)} {
		_, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "https://adapter.test",
			Authority: &text})
		platformtest.Refused(t, err, fault.InvalidArgument, "input.authority")
	}
	require.Empty(t, called, "nothing was dialled")
	require.Zero(t, kit.Count("adapter", ""))

	made, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "https://adapter.test",
		Authority: &pinned})
	require.NoError(t, err)
	require.Equal(t, pinned, made.Authority)
	require.Equal(t, pinned, called[0].Authority)
	again, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "https://adapter.test"})
	require.NoError(t, err)
	require.Equal(t, pinned, again.Authority, "left out, it stays")
	for _, in := range []adapter.RegisterInput{
		{Name: "demo", URL: "https://adapter.test", Authority: &none}, {Name: "demo", URL: "https://other.test"},
		{Name: "demo", URL: "http://adapter.test"},
	} {
		_, err = verbs.Register(operator, in)
		platformtest.Refused(t, err, fault.AdapterInsecure)
	}
	require.Equal(t, 1, kit.Count("adapter", "url = 'https://adapter.test' AND authority = $1", pinned),
		"nothing was changed")
	verbs.Trust.Certificate = func() *tls.Certificate { return nil }
	_, err = verbs.Register(operator, adapter.RegisterInput{Name: "mutual", URL: "https://mutual.test"})
	require.NoError(t, err,
		"an adapter that checks the platform's certificate may be vouched for by the machine's authorities")
}

func TestOnlyAnAdapterThatIsThereGoesOnWithoutTLSAndOnlyByTheOperatorsSwitch(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	old := kit.Adapter("http://10.0.0.7:8080", nil)
	verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(string, string) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	})}
	operator := kit.As(kit.Operator())
	again := adapter.RegisterInput{Name: old.Name, URL: old.URL}
	_, err := verbs.Register(operator, again)
	platformtest.Refused(t, err, fault.AdapterInsecure, "input.url")
	verbs.Trust.Insecure = true
	_, err = verbs.Register(operator, again)
	require.NoError(t, err)
	_, err = verbs.Register(operator, adapter.RegisterInput{Name: old.Name, URL: "http://10.0.0.8:8080"})
	platformtest.Refused(t, err, fault.AdapterInsecure, "input.url")
	_, err = verbs.Register(operator, adapter.RegisterInput{Name: "fresh", URL: "http://10.0.0.7:8080"})
	platformtest.Refused(t, err, fault.AdapterInsecure, "input.url")
}

func TestARefreshHearsAdaptersThatWereNotThereYet(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	late, gone := kit.Adapter("http://late.test", nil),
		kit.Adapter("http://gone.test", json.RawMessage(`{"build": "old"}`))
	moving := kit.Adapter("http://old.test", nil)
	verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(name, _ string) (json.RawMessage, error) {
		switch name {
		case gone.Name:
			return nil, fault.New(fault.AdapterUnavailable, "nobody answers")
		case moving.Name: // its address is changed while it is asked
			kit.SQL(`UPDATE adapter SET url = 'http://new.test' WHERE id = $1`, moving.ID)
		}
		return json.RawMessage(`{"build": "new"}`), nil
	})}
	require.NoError(t, verbs.Refresh(t.Context()))
	operator := kit.As(kit.Operator())
	row, err := verbs.Adapter(operator, late.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"build": "new"}`, string(row.Description))
	require.NotNil(t, row.LastSeenAt)
	row, err = verbs.Adapter(operator, gone.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"build": "old"}`, string(row.Description))
	require.Equal(t, "nobody answers", row.LastError)
	require.Nil(t, row.LastSeenAt)
	row, err = verbs.Adapter(operator, moving.ID)
	require.NoError(t, err)
	require.Empty(t, row.Description, "what the old address said is not the new one's word")
}
