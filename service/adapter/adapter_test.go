package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// describe answers for every adapter.
func describe(answer func(name, url string) (json.RawMessage, error)) func(context.Context, string, string) (json.RawMessage, error) {
	return func(_ context.Context, name, url string) (json.RawMessage, error) { return answer(name, url) }
}

func refused(t *testing.T, err error, code fault.Code, path ...string) {
	t.Helper()
	got, ok := fault.As(err)
	require.True(t, ok, "want %s, got %v", code, err)
	require.Equal(t, code, got.Code, err.Error())
	for _, p := range path {
		require.Contains(t, err.Error(), "(at "+p+")")
	}
}

func TestAnAdapterIsRegisteredWithWhatItSaysOfItselfAndMoves(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	operator := kit.As(kit.Operator())
	answer := func(name, url string) (json.RawMessage, error) {
		return json.RawMessage(`{"name": "` + name + `", "build": "` + url + `"}`), nil
	}
	verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(name, url string) (json.RawMessage, error) { return answer(name, url) })}
	made, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://one.test:8080/"})
	require.NoError(t, err)
	require.Equal(t, "http://one.test:8080", made.URL)
	require.JSONEq(t, `{"name": "demo", "build": "http://one.test:8080"}`, string(made.Description))
	require.NotNil(t, made.LastSeenAt)
	require.Empty(t, made.LastError)

	kit.SQL(`UPDATE adapter SET feed_epoch = 'e', feed_cursor = '7'`)
	again, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://one.test:8080"})
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, "7", again.FeedCursor, "at the same address the feed goes on")
	answer = func(string, string) (json.RawMessage, error) {
		return nil, errors.New("dial tcp 10.0.0.1: secret detail")
	}
	moved, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "https://two.test"})
	require.NoError(t, err)
	require.Equal(t, made.ID, moved.ID)
	require.Equal(t, "https://two.test", moved.URL)
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
	_, err = verbs.Adapters(kit.As(kit.User(kit.Tenant(), platformtest.In(authz.ProjectAdmin, kit.Project(kit.Tenant())))), page.Args{First: 10})
	refused(t, err, fault.Forbidden)
}

func TestAnAdapterOfAnUnreadableDescriptionIsRegisteredWithTheReason(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	for said, says := range map[string]string{`[1]`: "no JSON object", `{`: "no JSON object"} {
		verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(string, string) (json.RawMessage, error) { return json.RawMessage(said), nil })}
		row, err := verbs.Register(kit.As(kit.Operator()), adapter.RegisterInput{Name: "demo", URL: "http://one.test"})
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
		Describe: describe(func(string, string) (json.RawMessage, error) { dialled++; return json.RawMessage(`{}`), nil }),
		Allow: func(address *url.URL) error {
			if address.Hostname() == "one.test" {
				return nil
			}
			return fault.New(fault.DialRefused, "%s is not on the allow-list", address.Host)
		}}
	operator := kit.As(kit.Operator())
	_, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://169.254.169.254"})
	refused(t, err, fault.DialRefused, "input.url")
	for _, address := range []string{"", "ftp://one.test", "http://user:pass@one.test", "http://one.test?x=1", "http://one.test#x", "http://", "one.test"} {
		_, err := verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: address})
		refused(t, err, fault.InvalidArgument, "input.url")
	}
	_, err = verbs.Register(operator, adapter.RegisterInput{Name: "Demo!", URL: "http://one.test"})
	refused(t, err, fault.InvalidArgument, "input.name")
	_, err = verbs.Register(kit.As(kit.User(nil, platformtest.OnPlatform(authz.AppPublisher))), adapter.RegisterInput{Name: "demo", URL: "http://one.test"})
	refused(t, err, fault.Forbidden)
	require.Zero(t, dialled)
	require.Zero(t, kit.Count("adapter", ""))

	verbs.Describe = describe(func(string, string) (json.RawMessage, error) {
		return nil, fault.New(fault.DialRefused, "resolves to 127.0.0.1")
	})
	_, err = verbs.Register(operator, adapter.RegisterInput{Name: "demo", URL: "http://one.test"})
	refused(t, err, fault.DialRefused, "input.url")
	require.Zero(t, kit.Count("adapter", ""))
}

func TestARefreshHearsAdaptersThatWereNotThereYet(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	late, gone := kit.Adapter("http://late.test", nil), kit.Adapter("http://gone.test", json.RawMessage(`{"build": "old"}`))
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
