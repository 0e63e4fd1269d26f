package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// demoApp is an app whose operation is three steps on every member, with a point of no return.
func demoApp() App {
	return App{
		Slug:       "demo",
		Components: []Component{{Key: "peer", DisplayName: "Peer", Min: 1, Max: 8, Default: 1}},
		ConfigSchema: json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string","maxLength":8},"mode":{"type":"string"}},"additionalProperties":false}`),
		Operations: map[Kind]OperationFunc{
			InstanceCreate:       demoCreate,
			InstanceDecommission: demoDecommission,
			MemberDrain:          demoDrain,
			MemberRemove:         demoRemove,
			MembersAdd:           demoAdd,
			MemberLabel:          func(context.Context, *Run) error { panic("the author's mistake") },
		},
		Check: func(_ context.Context, d Dispatch) error {
			if d.Instance.Version == "0.0.1" {
				return Reject("UNSAFE_VERSION", "instance.version", "version %s loses data", d.Instance.Version)
			}
			return nil
		},
		Plan: demoPlan,
		Actions: []AppAction{{
			Action: Action{
				Name: "say", DisplayName: "Say", PermissionKey: "apps.queue.submit", Risk: RiskWrite,
				InputSchema: json.RawMessage(
					`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
				OutputSchema: json.RawMessage(
					`{"type":"object","properties":{"heard":{"type":"string"}},"required":["heard"]}`),
			},
			Do: demoSay,
		}},
		Observe: func(_ context.Context, call *Call) (Observation, error) {
			seen := Observation{Health: Healthy, Message: "all there"}
			for _, m := range call.Of("peer") {
				seen.Members = append(seen.Members, MemberObservation{ID: m.ID, Health: Healthy})
			}
			return seen, nil
		},
		UsageDimensions: []UsageDimension{{Name: "greetings", Unit: "greeting"}},
		Usage: func(_ context.Context, _ *Call, after string) (UsagePage, error) {
			if after == "1" {
				return UsagePage{Cursor: "1"}, nil
			}
			return UsagePage{Cursor: "1", Records: []UsageRecord{{ID: "u1", Dimension: "greetings",
				Quantity: "1.5"}}}, nil
		},
	}
}

func demoCreate(ctx context.Context, run *Run) error {
	var config struct{ Mode string }
	if err := run.Config(&config); err != nil {
		return err
	}
	token, err := run.Once("token", func() (string, error) { return fmt.Sprintf("random-%d", os.Getpid()), nil })
	if err != nil {
		return err
	}
	peers := run.Of("peer")
	for i, step := range []string{"first", "second", "third"} {
		run.Progress(step, 10+30*i, "doing "+step)
		for _, peer := range peers {
			// The process id makes the rendering of a resumed step differ on purpose.
			task := RunCommand{Command: []string{step, token, fmt.Sprint(os.Getpid())}}
			if config.Mode == "fail" && i == 1 {
				task.Command[0] = "must-fail"
			}
			if _, err := run.Do(ctx, peer, step, task); err != nil {
				return demoUndo(ctx, run, err)
			}
		}
	}
	if err := run.Commit(); err != nil {
		return demoUndo(ctx, run, err)
	}
	if _, err := run.Do(ctx, peers[0], "committed", RunCommand{Command: []string{"committed"}}); err != nil {
		return err
	}
	for _, peer := range peers {
		if err := run.Member(peer.ID, MemberActive, Healthy, map[string]any{"at": peer.Node.Address}); err != nil {
			return err
		}
	}
	return run.Evidence("peers", len(peers))
}

func demoUndo(ctx context.Context, run *Run, reason error) error {
	ctx, cancel := run.Cleanup(ctx)
	defer cancel()
	_, err := run.Do(ctx, run.Of("peer")[0], "undo", RunCommand{Command: []string{"undo"}})
	if err != nil && !errors.Is(err, context.Canceled) {
		return errors.Join(reason, err)
	}
	return reason
}

func demoDecommission(ctx context.Context, run *Run) error {
	return run.Each(ctx, run.Of("peer"), func(ctx context.Context, m Member) error {
		if _, err := run.Do(ctx, m, "teardown", Teardown{}); err != nil {
			return err
		}
		return run.Member(m.ID, MemberRemoved, HealthUnknown, nil)
	})
}

// demoWork is a piece of work that is longer than the contract lets a text be.
func demoWork(member string) Work {
	return Work{Kind: "job", ID: "7", Name: strings.Repeat("n", 300), MemberID: member, Owner: "ada",
		Since: time.Unix(0, 0).UTC(), Message: "counts"}
}

// demoDrain waits for the step "job" of its member, unless it is forced.
func demoDrain(ctx context.Context, run *Run) error {
	member := run.Targets()[0]
	if _, err := run.Do(ctx, member, "shut", RunCommand{Command: []string{"shut"}}); err != nil {
		return err
	}
	if !run.Force() {
		run.Progress("waiting", 50, "waiting for a job")
		run.WaitsFor([]Work{demoWork(member.ID)})
		if _, err := run.Do(ctx, member, "job", RunCommand{Command: []string{"job"}}); err != nil {
			return demoUndo(ctx, run, err)
		}
	}
	return run.Member(member.ID, MemberDrained, Healthy, nil)
}

func demoRemove(ctx context.Context, run *Run) error { return run.Teardown(ctx, run.Targets()) }

func demoAdd(ctx context.Context, run *Run) error {
	var change AddChange
	if err := run.Change(&change); err != nil {
		return err
	}
	if len(change.Components) == 0 {
		return Fail("NOTHING_TO_ADD", OwnerPlatform, false, "the change names no component")
	}
	for _, member := range run.Targets() {
		if err := run.Member(member.ID, MemberActive, Healthy, nil); err != nil {
			return err
		}
	}
	return nil
}

func demoPlan(ctx context.Context, plan *PlanCall) (PlanAnswer, error) {
	answer := PlanAnswer{Verdict: VerdictSafe, Reversible: true, Message: "as you like"}
	for _, member := range plan.Targets() {
		if _, err := plan.Do(ctx, member, "look", RunCommand{Command: []string{"look"}}); err != nil {
			return answer, err
		}
		for range MaxWork + 1 {
			answer.WorkLost = append(answer.WorkLost, demoWork(member.ID))
		}
	}
	if plan.Request.Kind == MemberRemove && !plan.Request.Force {
		return PlanAnswer{}, Reject("LAST_ONE", "targets[0]", "the last one stays")
	}
	return answer, nil
}

func demoSay(ctx context.Context, call *Call) (any, error) {
	var input struct{ Text string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, err
	}
	switch input.Text {
	case "rude":
		return nil, Reject("RUDE", "input.text", "that is rude")
	case "broken":
		return map[string]any{"heard": 7}, nil
	}
	result, err := call.Do(ctx, call.Of("peer")[0], "say", RunCommand{Command: []string{"echo", input.Text}})
	if err != nil {
		return nil, err
	}
	return map[string]any{"heard": result.Stdout}, nil
}

// startKit runs a kit of the demo app behind a real HTTP server and stops both at the end.
func startKit(t *testing.T, l *lab, config Config) (base string, kit *Kit) {
	t.Helper()
	kit, err := New(config)
	require.NoError(t, err)
	require.NoError(t, kit.Start(context.Background()))
	server := httptest.NewServer(kit.Handler())
	t.Cleanup(func() {
		kit.Stop()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, kit
}

func setup(t *testing.T) (l *lab, base string) {
	t.Helper()
	l = newLab(t)
	base, _ = startKit(t, l, l.config(t.TempDir(), demoApp()))
	return l, base
}

// dispatch sends a dispatch and requires this answer.
func (l *lab) dispatch(base string, d Dispatch, want int) []byte {
	l.t.Helper()
	code, body := l.call(base, http.MethodPut, OperationPath(d.OperationID), d)
	require.Equal(l.t, want, code, "body: %s", body)
	return body
}
