package drills_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// oneRange begins the ids of a node that has them for one member alone.
const oneRange = "4294901000"

// machine brings up a node of the drill's own, whose agent reaches the platform there. It goes with the drill.
func (w *ward) machine(platform string, flags ...string) (name string) {
	w.t.Helper()
	name = "drill-" + client.NewKey()[:8]
	node, err := shared.AddNode(w.ctx, name)
	w.fine(err)
	minted, err := gql.CreateNodeEnrolment(w.ctx, w.operator, gql.CreateNodeEnrolmentInput{Name: name, TtlMinutes: 5})
	w.fine(err)
	token := filepath.Join(node.State, "token")
	w.fine(os.WriteFile(token, []byte(minted.CreateNodeEnrolment.Token), 0o600))
	flags = append(flags, "--enrol-token-file", token)
	if os.Geteuid() == 0 {
		flags = append(flags, "--cgroup-parent", node.Cgroup)
	}
	_, err = node.Program(supervise.Spec{Name: "agent-" + name, Restart: supervise.OnFailure,
		Command: append(w.agent(name, platform), flags...)})
	w.fine(err)
	w.later(func(ctx context.Context) {
		w.fine(node.Kill())
		w.ctx = ctx
		w.takesAway(name)
	})
	w.eventually("the node is heard", func() error { return w.heard(name) })
	return name
}

// walled brings up a node whose members are containers.
func (w *ward) walled(flags ...string) (name string) {
	w.t.Helper()
	root, err := shared.MemberRoot(w.ctx)
	w.fine(err)
	return w.machine(shared.URL, append(flags, "--member-network=false", "--member-root", root)...)
}

// needsRoot skips a drill where the user may not create containers.
func (w *ward) needsRoot() {
	w.t.Helper()
	if os.Geteuid() != 0 {
		w.t.Skip("members in containers need root")
	}
}

// apart does something while the first node takes no members, so that they come to the drill's own.
func (w *ward) apart(do func()) {
	w.t.Helper()
	first := w.nodeID("node-1")
	_, err := gql.CordonNode(w.ctx, w.operator, gql.NodeOperateInput{NodeId: first, Reason: "a drill"})
	w.fine(err)
	defer func() {
		_, err := gql.UncordonNode(context.WithoutCancel(w.ctx), w.operator, gql.NodeOperateInput{NodeId: first,
			Reason: "a drill"})
		w.fine(err)
	}()
	do()
}

// hushed is a way to the platform by which no agent's word of how a task ended passes while it is shut.
func (w *ward) hushed(shut *atomic.Bool) (platform string) {
	w.t.Helper()
	target, err := url.Parse(shared.URL)
	w.fine(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		ends := bytes.Contains(body, []byte("reportNodeTask")) && !bytes.Contains(body, []byte(`"RUNNING"`))
		if err != nil || shut.Load() && ends {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	return server.URL
}

// brief is alive, by a task that has a second.
func brief(ctx context.Context, run *adapter.Run) error {
	for _, member := range run.Dispatch().Members {
		if _, err := run.Do(ctx, member, "brief", adapter.RunCommand{Command: []string{"true"}},
			adapter.Within(time.Second)); err != nil {
			return err
		}
	}
	return alive(ctx, run)
}

// tries is alive, as often as that takes.
func tries(ctx context.Context, run *adapter.Run) error {
	for n := 1; ; n++ {
		err := serve(ctx, run, run.Dispatch().Members, fmt.Sprint("alive-", n))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(2 * time.Second):
		}
	}
}

// runtimeGone takes the container runtime from a node on which a launch is under way.
func runtimeGone(w *ward) {
	w.needsRoot()
	p, until := w.plays(), make(chan struct{})
	does(&p.create, halts(until, alive))
	found, err := exec.LookPath("crun")
	w.fine(err)
	content, err := os.ReadFile(found)
	w.fine(err)
	runtime := filepath.Join(w.t.TempDir(), "crun")
	w.fine(os.WriteFile(runtime, content, 0o755))
	w.walled("--runtime", runtime)
	w.apart(func() { w.launch() })
	w.fine(os.Rename(runtime, runtime+".gone"))
	w.mend = func() {
		w.fine(os.Rename(runtime+".gone", runtime))
		w.clears("NODE_RUNTIME_MISSING")
		close(until)
	}
}

// clears waits until the operation of the walk is not blocked by that any more.
func (w *ward) clears(code string) {
	w.t.Helper()
	w.eventually(code+" is cleared", func() error {
		shown, err := gql.ShowTriage(w.ctx, w.admin, w.about.ID)
		if err == nil && shown.Triage.Code == code {
			err = errNotYet
		}
		return err
	})
}

// machineDrills are those of nodes with agents of the drill's own.
var machineDrills = map[string]drill{
	"instance-stuck/waits/node-runtime-missing": {fault: runtimeGone, cure: launched},
	"node-lost/unwell/runtime":                  {fault: runtimeGone, cure: launched},
	"instance-stuck/waits/node-refuses-member": {
		fault: func(w *ward) {
			w.needsRoot()
			p, first := w.plays(), ""
			does(&p.create, tries)
			w.walled("--id-first", oneRange)
			w.apart(func() { first = w.running(); w.launch() })
			w.mend = func() { w.succeeds(w.decommission(first, false)) } // its ids are free then
		},
		cure: launched,
	},
	"instance-stuck/waits/task-overdue": {
		fault: func(w *ward) {
			w.patience = 2 * time.Minute // it is overdue a minute after its time
			p, shut := w.plays(), &atomic.Bool{}
			does(&p.create, brief)
			w.machine(w.hushed(shut), plain...)
			shut.Store(true)
			w.apart(func() { w.launch() })
			w.mend = func() { shut.Store(false) }
			w.later(func(context.Context) { w.mend() })
		},
		cure: launched,
	},
	"operator/node-is-offline/the-platform-cannot-be-reached": {
		fault: func(w *ward) {
			name := w.machine(between.through(shared.URL), plain...)
			between.cut(true)
			w.mend = func() {
				between.cut(false)
				w.eventually("the node is heard", func() error { return w.heard(name) })
			}
		},
		cure: func(w *ward) { w.mend() },
	},
}
