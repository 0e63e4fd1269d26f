package kit

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// AdapterRole is the child that is an adapter whose operations do nothing.
const AdapterRole process.Role = "adapter"

// AdapterConfig holds the adapter's configuration.
type AdapterConfig struct{ Keys, Issuer, StateDir string }

// arrivals notes when each operation was first dispatched.
type arrivals struct {
	mu sync.Mutex
	at map[string]int64 // operation id → nanoseconds since 1970
}

// AdapterMain is an adapter built with the server kit. Commands: "address", and "arrivals", which
// answers when each operation was first sent here and forgets it.
func AdapterMain(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var config AdapterConfig
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	ring, err := token.LoadKeyring(config.Keys, config.Issuer)
	if err != nil {
		return nil, nil, err
	}
	schema, err := json.Marshal(dataset.Manifest()["configSchema"])
	if err != nil {
		return nil, nil, err
	}
	nothing := func(context.Context, *adapter.Run) error { return nil }
	kit, err := adapter.New(adapter.Config{
		Name: dataset.AdapterName, Build: "bench", StateDir: config.StateDir, Issuer: config.Issuer,
		Keys: published{ring},
		Apps: []adapter.App{{Slug: dataset.App, ConfigSchema: schema,
			Components: []adapter.Component{{Key: "worker", DisplayName: "Workers", Min: 1, Max: 8, Default: 1}},
			Operations: map[adapter.Kind]adapter.OperationFunc{adapter.InstanceCreate: nothing}}},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := kit.Start(ctx); err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	seen := &arrivals{}
	web := &http.Server{Handler: seen.watch(kit.Handler()), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- web.Serve(listener) }()
	stop := func() {
		_ = web.Close()
		<-done
		kit.Stop()
	}
	return process.WithMeasures(process.Commands{
		"address":  func(json.RawMessage) (any, error) { return "http://" + listener.Addr().String(), nil },
		"arrivals": func(json.RawMessage) (any, error) { return seen.take(), nil },
	}), stop, nil
}

// published is a ring's own public key, as the published set would give it.
type published struct{ ring *token.Keyring }

// Key implements adapter.KeySource.
func (p published) Key(_ context.Context, kid string) (ed25519.PublicKey, error) {
	private, id := p.ring.SigningKey()
	if id != kid {
		return nil, fmt.Errorf("key %s is not known", kid)
	}
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the signing key is of another kind")
	}
	return public, nil
}

// watch notes dispatches on their way in.
func (a *arrivals) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, ok := strings.CutPrefix(r.URL.Path, "/v1/operations/"); ok && r.Method == http.MethodPut {
			a.note(id, time.Now().UnixNano())
		}
		next.ServeHTTP(w, r)
	})
}

func (a *arrivals) note(id string, at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == nil {
		a.at = make(map[string]int64)
	}
	if _, again := a.at[id]; !again {
		a.at[id] = at
	}
}

func (a *arrivals) take() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.at
	a.at = nil
	return taken
}
