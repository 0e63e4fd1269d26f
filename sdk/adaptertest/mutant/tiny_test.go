// Package mutant proves that every clause of the conformance suite can fail: a tiny adapter, written
// from the contract alone and without the adapter kit, passes all of them, and each of its mutants,
// which has one deliberate fault, fails exactly the clause that the fault breaks.
package mutant

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

const name = "tiny"

// errTask is wrapped where a node task did not succeed.
var errTask = errors.New("the node task ended")

// disk is what outlives a kill: everything a tiny adapter knows. A killed one writes no more.
type disk struct {
	mu         sync.Mutex
	version    uint64
	operations map[string]*record
	instances  map[string]*known
	actions    map[string]string
	changed    chan struct{}
	tombstones map[string]int
}

// record is one operation.
type record struct {
	dispatch   adapter.Dispatch
	hash       string
	generation int
	status     adapter.Status
	version    uint64
	finished   int // steps done in this generation
	canceled   bool
	puts       int
	read       bool // its end has been read
	run        *run
}

// known is an instance as it was last dispatched.
type known struct {
	instance adapter.Instance
	members  []adapter.Member
	gone     bool
	headless bool // nobody leads
}

// tiny is one process of the adapter, started over a disk.
type tiny struct {
	fault       string
	platform    string
	disk        *disk
	incarnation int
	ctx         context.Context
	cancel      context.CancelFunc
	kid         string
	key         ed25519.PublicKey
	server      *http.Server
	served      chan struct{} // closed when the server has ended
	log         io.Writer
	asked       int // descriptions so far
}

// broken says whether this mutant has the fault that breaks a clause.
func (t *tiny) broken(clause string) bool { return t.fault == clause }

// launcher starts and kills tiny adapters in this process; it is the suite's Launcher.
type launcher struct {
	fault string
	disk  *disk

	mu      sync.Mutex
	address string
	count   int
	current *tiny
	said    strings.Builder
}

func newLauncher(fault string) *launcher {
	return &launcher{fault: fault, disk: &disk{
		operations: map[string]*record{}, instances: map[string]*known{}, actions: map[string]string{},
		changed: make(chan struct{}), tombstones: map[string]int{},
	}}
}

// Start implements conformance.Launcher.
func (l *launcher) Start(_ context.Context, platform string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.address == "" {
		address, err := loopback.Address()
		if err != nil {
			return "", err
		}
		l.address = address
	}
	listener, err := loopback.Listen(l.address)
	if err != nil {
		return "", err
	}
	l.count++
	t := &tiny{fault: l.fault, platform: platform, disk: l.disk, incarnation: l.count, log: l}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if t.kid, t.key, err = fetchKey(platform); err != nil {
		return "", errors.Join(err, listener.Close())
	}
	l.current = t
	t.resume()
	t.server = &http.Server{Handler: t.routes(), ReadHeaderTimeout: time.Minute}
	t.served = make(chan struct{})
	go func() {
		defer close(t.served)
		_ = t.server.Serve(listener)
	}()
	return "http://" + l.address, nil
}

// Kill implements conformance.Launcher.
func (l *launcher) Kill() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil
	}
	l.current.disk.mu.Lock()
	l.current.cancel()
	l.current.disk.mu.Unlock()
	err := l.current.server.Close()
	<-l.current.served // it may not have begun, and then it closes the listener only now
	l.current = nil
	return err
}

// Write keeps what the adapter logs.
func (l *launcher) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.Write(p)
}

// Output implements conformance.Launcher.
func (l *launcher) Output() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// resume goes on with what has not ended.
func (t *tiny) resume() {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if t.incarnation == 1 {
		return
	}
	if t.broken("crash.feed") {
		t.disk.version = 0
		for _, r := range t.disk.operations {
			r.version = 0
		}
	}
	if t.broken("crash.instance") {
		t.disk.instances = map[string]*known{}
	}
	for id, r := range t.disk.operations {
		r.run = nil
		switch {
		case r.status.State.Terminal() && t.broken("crash.remembers"):
			delete(t.disk.operations, id)
		case !r.status.State.Terminal() && !t.broken("crash.resumes"):
			t.begin(r)
		}
	}
}

// write changes what is on disk, unless the process was killed. The disk is not locked.
func (t *tiny) write(change func()) bool {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if t.ctx.Err() != nil {
		return false
	}
	change()
	return true
}

// publish gives a status a new version and wakes the readers of the feed. The disk is locked.
func (t *tiny) publish(r *record) {
	t.disk.version++
	r.version = t.disk.version
	if t.broken("feed.wakes") {
		return
	}
	close(t.disk.changed)
	t.disk.changed = make(chan struct{})
}

// ask calls the platform's public API.
func ask(ctx context.Context, p adapter.Platform, query string, variables map[string]any, out any) error {
	raw, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.GraphQLURL, strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return fmt.Errorf("the platform refused: %s", answer.Errors[0].Message)
	}
	return json.Unmarshal(answer.Data, out)
}

// node runs a node task and waits for its end. When ctx ends, the task is canceled first, unless
// the caller is broken and leaves it.
func node(
	ctx context.Context, access func() adapter.Platform, member, key string, kind adapter.TaskKind, spec any,
	leave func() bool,
) error {
	type view struct {
		ID      string `json:"id"`
		State   adapter.TaskState
		Message string
	}
	var made struct{ RunNodeTask view }
	input := map[string]any{"memberId": member, "kind": kind, "spec": spec, "timeoutSeconds": 30, "idempotencyKey": key}
	// Not cut off when ctx ends: without the answer no one would know the id of a task that was created.
	err := ask(
		context.WithoutCancel(ctx),
		access(),
		`mutation($i:RunNodeTaskInput!){runNodeTask(input:$i){id state message}}`,
		map[string]any{"i": input},
		&made,
	)
	task := made.RunNodeTask
	for err == nil && !task.State.Ended() {
		var seen struct{ NodeTask view }
		err = ask(
			ctx,
			access(),
			`query($id:ID!){nodeTask(id:$id,waitSeconds:20){...T}} fragment T on NodeTask{id state message}`,
			map[string]any{"id": task.ID},
			&seen,
		)
		if err == nil {
			task = seen.NodeTask
		}
	}
	if err != nil && task.ID != "" && !leave() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = ask(
			late,
			access(),
			`mutation($id:ID!){cancelNodeTask(taskId:$id){id}}`,
			map[string]any{"id": task.ID},
			&struct{}{},
		)
	}
	if err == nil && task.State != adapter.TaskSucceeded {
		err = fmt.Errorf("%w %s: %s", errTask, task.State, task.Message)
	}
	return err
}
