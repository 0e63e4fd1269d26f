package workers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// kit serves an app that does nothing on the nodes, with the product's own server kit.
func (l *lab) kit(name string, create adapter.OperationFunc) (url string) {
	l.Helper()
	config := adapter.Config{
		Name: name, Build: "test", StateDir: l.TempDir(), Issuer: l.platform.URL,
		Keys: adapter.NewKeySet(l.platform.URL+"/.well-known/jwks.json", http.DefaultClient),
		Apps: []adapter.App{{
			Slug: "demo", Components: []adapter.Component{{Key: "peer", DisplayName: "Peer", Min: 1, Max: 8,
				Default: 2}},
			ConfigSchema: json.RawMessage(`{"type":"object"}`),
			Observe: func(context.Context, *adapter.Call) (adapter.Observation, error) {
				return adapter.Observation{Health: adapter.Healthy, Message: "well"}, nil
			},
			Operations: map[adapter.Kind]adapter.OperationFunc{
				adapter.InstanceCreate: create,
				adapter.InstanceDecommission: func(_ context.Context, run *adapter.Run) error {
					run.Progress("stopping", 50, "stopping")
					return nil
				},
			},
		}},
	}
	kit, err := adapter.New(config)
	require.NoError(l.TB, err)
	require.NoError(l.TB, kit.Start(context.Background()))
	server := httptest.NewServer(kit.Handler())
	l.Cleanup(func() {
		kit.Stop()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// joins is a create that says of each member that it is active and well.
func joins(_ context.Context, run *adapter.Run) error {
	run.Progress("joining", 40, "members join")
	for _, peer := range run.Of("peer") {
		if err := run.Member(peer.ID, adapter.MemberActive, adapter.Healthy,
			map[string]any{"at": peer.Node.Address}); err != nil {
			return err
		}
	}
	return run.Evidence("peers", len(run.Of("peer")))
}
