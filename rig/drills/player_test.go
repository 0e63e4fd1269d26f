package drills_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// player is an adapter of this process that is registered in the place of the smallest app's while a drill runs: it
// keeps the contract by the kit, and does what the drill says.
type player struct {
	url string
	// create and gone carry out a launch and a teardown; nil for what an ordinary app does.
	create, gone atomic.Pointer[adapter.OperationFunc]
	// front answers in place of the kit where it is set.
	front atomic.Pointer[http.HandlerFunc]
	kit   http.Handler
}

// appManifest is the manifest of the smallest app, as its program prints it.
func (w *ward) appManifest() []byte {
	w.t.Helper()
	printed, err := exec.CommandContext(w.ctx, filepath.Join("..", "..", "bin", "hello-cluster-controller"),
		"--print-manifest").Output()
	w.fine(err)
	return printed
}

// plays registers a player for the drill, and the app's own adapter again when the drill is over.
func (w *ward) plays() *player {
	w.t.Helper()
	own := w.adapterURL()
	p := w.performs(adapterName, w.appManifest())
	w.later(func(ctx context.Context) {
		_, err := gql.RegisterAdapter(ctx, shared.Operator, gql.RegisterAdapterInput{Name: adapterName, Url: own})
		w.fine(err)
	})
	return p
}

// performs registers a player under a name, for the app of a manifest.
func (w *ward) performs(name string, manifest []byte) *player {
	w.t.Helper()
	p := &player{}
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{"hello.say": nothing,
		"hello.list": nothing, "work.start": nothing, "work.list": nothing})
	w.fine(err)
	app.Operations = map[adapter.Kind]adapter.OperationFunc{
		adapter.InstanceCreate:       p.first(&p.create, alive),
		adapter.InstanceDecommission: p.first(&p.gone, leave),
		adapter.MemberReplace:        exchange,
		adapter.MemberRecover:        alive,
	}
	app.Observe = func(context.Context, *adapter.Call) (adapter.Observation, error) {
		return adapter.Observation{Health: adapter.Healthy}, nil
	}
	kit, err := adapter.New(adapter.Config{Name: name, Build: "drill", Apps: []adapter.App{app},
		StateDir: w.t.TempDir(), Issuer: shared.URL, Keys: adapter.NewKeySet(shared.URL+"/.well-known/jwks.json", nil),
		GraphQLURL: shared.URL + "/graphql", Log: slog.New(slog.DiscardHandler)})
	w.fine(err)
	w.fine(kit.Start(context.Background()))
	p.kit = kit.Handler()
	server := httptest.NewServer(p)
	p.url = server.URL
	_, err = gql.RegisterAdapter(w.ctx, w.operator, gql.RegisterAdapterInput{Name: name, Url: p.url})
	w.fine(err)
	w.later(func(context.Context) {
		if name != adapterName { // nobody is left to ask for the usage of what it ran
			w.sql(`INSERT INTO usage_source (source, basis, tenant_id, project_id, ended_at)
				SELECT id, 'APP', tenant_id, project_id, now() FROM instance WHERE app_slug = $1
				ON CONFLICT (source) DO UPDATE SET ended_at = now(), last_error = ''`, name)
		}
		server.CloseClientConnections()
		kit.Stop()
		server.Close()
	})
	return p
}

// adapterName is the name of the smallest app's adapter.
const adapterName = "hello-cluster"

// adapterURL is where the smallest app's adapter is registered.
func (w *ward) adapterURL() string {
	w.t.Helper()
	listed, err := gql.ListAdapters(w.ctx, w.operator, 100, "")
	w.fine(err)
	for _, edge := range listed.Adapters.Edges {
		if edge.Node.Name == adapterName {
			return edge.Node.Url
		}
	}
	w.t.Fatal("the app's adapter is not registered")
	return ""
}

// register registers the app's adapter at an address.
func (w *ward) register(url string, authority *string) {
	w.t.Helper()
	_, err := gql.RegisterAdapter(w.ctx, w.operator, gql.RegisterAdapterInput{Name: adapterName, Url: url,
		Authority: authority})
	w.fine(err)
}

// ServeHTTP implements http.Handler.
func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if front := p.front.Load(); front != nil {
		(*front)(w, r)
		return
	}
	p.kit.ServeHTTP(w, r)
}

// answers puts an answer in front of the kit; nil takes it away.
func (p *player) answers(with http.HandlerFunc) {
	if with == nil {
		p.front.Store(nil)
		return
	}
	p.front.Store(&with)
}

// first is what the drill has set, else what an ordinary app does.
func (p *player) first(set *atomic.Pointer[adapter.OperationFunc],
	otherwise adapter.OperationFunc) adapter.OperationFunc {
	return func(ctx context.Context, run *adapter.Run) error {
		if do := set.Load(); do != nil {
			return (*do)(ctx, run)
		}
		return otherwise(ctx, run)
	}
}

// does sets what it does.
func does(set *atomic.Pointer[adapter.OperationFunc], do adapter.OperationFunc) {
	if do == nil {
		set.Store(nil)
		return
	}
	set.Store(&do)
}

func nothing(context.Context, *adapter.Call) (any, error) { return map[string]any{}, nil }

// alive makes members as the app's probe wants them.
func alive(ctx context.Context, run *adapter.Run) error {
	return serve(ctx, run, run.Dispatch().Members, "alive")
}

// exchange makes the members alive that are not the one that goes, and lets that one go.
func exchange(ctx context.Context, run *adapter.Run) error {
	stays := slices.DeleteFunc(slices.Clone(run.Dispatch().Members), func(member adapter.Member) bool {
		return slices.Contains(run.Dispatch().Targets, member.ID)
	})
	if err := serve(ctx, run, stays, "alive"); err != nil {
		return err
	}
	return run.Teardown(ctx, run.Targets())
}

// serve makes the members alive in a step of that name.
func serve(ctx context.Context, run *adapter.Run, members []adapter.Member, step string) error {
	return run.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		if err := shell(ctx, run, member, step,
			`mkdir -p "$GPUAAS_MEMBER_ROOT/srv/hello" && touch "$GPUAAS_MEMBER_ROOT/srv/hello/alive"`); err != nil {
			return err
		}
		return run.Member(member.ID, adapter.MemberActive, adapter.Healthy, nil)
	})
}

// fragile is alive, with a process in each member that fails for good once a file is there.
func fragile(dies string) adapter.OperationFunc {
	return func(ctx context.Context, run *adapter.Run) error {
		err := run.Each(ctx, run.Dispatch().Members, func(ctx context.Context, member adapter.Member) error {
			_, err := run.Do(ctx, member, "fragile", adapter.StartProcess{Name: "fragile",
				Command: []string{"sh", "-c", `until test -e "$0"; do sleep 0.2; done; exit 1`, dies},
				Restart: adapter.Restart{Policy: "on_failure", MaxRestarts: 1, Backoff: 100 * time.Millisecond}})
			return err
		})
		if err != nil {
			return err
		}
		return alive(ctx, run)
	}
}

// claims says that members serve, and makes nothing.
func claims(ctx context.Context, run *adapter.Run) error {
	return run.Each(ctx, run.Dispatch().Members, func(_ context.Context, member adapter.Member) error {
		return run.Member(member.ID, adapter.MemberActive, adapter.Healthy, nil)
	})
}

// leave tears members down.
func leave(ctx context.Context, run *adapter.Run) error {
	return run.Teardown(ctx, run.Dispatch().Members)
}

// shell runs a script on the member.
func shell(ctx context.Context, run *adapter.Run, member adapter.Member, step, script string) error {
	_, err := run.Do(ctx, member, step, adapter.RunCommand{Command: []string{"sh", "-c", script}})
	return err
}

// halts does nothing until its operation is over, or until the drill lets it go.
func halts(until <-chan struct{}, then adapter.OperationFunc) adapter.OperationFunc {
	return func(ctx context.Context, run *adapter.Run) error {
		run.Progress("thinking", 20, "it thinks")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-until:
			return then(ctx, run)
		}
	}
}

func refuses(status int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}
