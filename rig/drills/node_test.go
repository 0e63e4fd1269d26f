package drills_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// agent is the command of a node's agent that reaches the platform there.
func (w *ward) agent(name, platform string) []string {
	state := filepath.Join(filepath.Dir(shared.LogDir()), "nodes", name, "agent")
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "node-agent"))
	w.fine(err)
	return []string{program, "--platform-url", platform, "--state-dir", state, "--name",
		name, "--address", "127.0.0.1", "--gpus", "2", "--simulated-gpus", "--gpu-model", "Simulated-80GB"}
}

// plain are the flags of an agent whose members are plain processes.
var plain = []string{"--no-namespaces", "--single-tenant"}

// heard returns nil if a node is online, and errNotYet or the cause if not.
func (w *ward) heard(name string) error {
	listed, err := gql.ListNodes(w.ctx, w.operator, 100, "")
	if err != nil {
		return err
	}
	for _, edge := range listed.Nodes.Edges {
		if edge.Node.Name == name && edge.Node.Status == gql.NodeStatusOnline {
			return nil
		}
	}
	return errNotYet
}

// nodeID is the id of a node.
func (w *ward) nodeID(name string) string {
	w.t.Helper()
	listed, err := gql.ListNodes(w.ctx, w.operator, 100, "")
	w.fine(err)
	for _, edge := range listed.Nodes.Edges {
		if edge.Node.Name == name {
			return edge.Node.Id
		}
	}
	w.t.Fatalf("there is no node %s", name)
	return ""
}

// elsewhere boots another node and runs an instance there. The node goes with the drill.
func (w *ward) elsewhere(run func() string) (node *stack.Node, id, instance string) {
	w.t.Helper()
	name := "drill-" + client.NewKey()[:8]
	node, err := shared.BootNode(w.ctx, name)
	w.fine(err)
	w.eventually("the node is heard", func() error { return w.heard(name) })
	id = w.nodeID(name)
	w.later(func(ctx context.Context) {
		for _, one := range shared.Nodes { // the node itself, or what it was started again as
			if one.Name() == name {
				_ = one.Agent.Stop()
			}
		}
		shared.ForgetNode(name)
		w.ctx = ctx
		w.takesAway(name)
	})
	w.apart(func() { instance = run() })
	require.Equal(w.t, name, w.members(instance)[0].Node.Name)
	w.about.ID = instance
	return node, id, instance
}

// takesAway takes a node that has stopped off the list, once it counts as silent: other drills look at all nodes.
func (w *ward) takesAway(name string) {
	w.t.Helper()
	in := gql.NodeOperateInput{NodeId: w.nodeID(name), Reason: "the drill is over"}
	w.patience = 90 * time.Second
	w.eventually(name+" is taken away", func() error {
		_, err := gql.RetireNode(w.ctx, shared.Operator, gql.RetireNodeInput{NodeId: in.NodeId, Lost: true,
			Reason: in.Reason})
		if err != nil && strings.Contains(err.Error(), "at input.lost") { // its agent was heard a moment ago
			return err
		}
		return nil // it is, or was before
	})
	if _, err := gql.DeleteNode(w.ctx, shared.Operator, in); err != nil {
		w.t.Logf("take %s away: %v", name, err)
	}
}

// lost runs an instance on a node that then dies for good, and waits until its member counts as lost.
func (w *ward) lost(run func() string) (node, instance string) {
	w.t.Helper()
	dead, id, instance := w.elsewhere(run)
	w.fine(dead.Agent.Stop())
	w.eventually("the node counts as offline", func() error { return w.node(gql.NodeStatusOffline) })
	return id, instance
}

// retired runs an instance on a node that an operator then takes out as lost.
func (w *ward) retired(run func() string) (instance string) {
	w.t.Helper()
	node, instance := w.lost(run)
	_, err := gql.RetireNode(w.ctx, w.operator, gql.RetireNodeInput{NodeId: node, Lost: true, Reason: "burnt"})
	w.fine(err)
	return instance
}

// replaces puts a member by force into capacity on another node.
func (w *ward) replaces(instance string) {
	w.t.Helper()
	got, err := gql.ReplaceMember(w.ctx, w.admin, gql.ReplaceMemberInput{MemberId: w.members(instance)[0].Id,
		AllocationId: w.rent(), Force: true, Reason: "its node is dead", IdempotencyKey: client.NewKey()})
	w.fine(err)
	w.ends(got.ReplaceMember.Operation.Id)
}

// forgotten makes the platform not know the agent's credential any more, as after a restore of its disk.
func forgotten(w *ward) {
	w.sql(`DELETE FROM node_credential WHERE node_id = $1`, w.nodeID("node-1"))
	enrolled := false
	w.mend = func() {
		if enrolled {
			return
		}
		enrolled = true
		minted, err := gql.CreateNodeEnrolment(w.ctx, w.operator,
			gql.CreateNodeEnrolmentInput{Name: "node-1", TtlMinutes: 5})
		w.fine(err)
		w.fine(os.WriteFile(filepath.Join(filepath.Dir(shared.LogDir()), "nodes", "node-1", "enrol-token"),
			[]byte(minted.CreateNodeEnrolment.Token), 0o600))
	}
	w.later(func(ctx context.Context) {
		w.ctx = ctx
		w.mend()
		w.eventually("the node is heard", func() error { return w.node(gql.NodeStatusOnline) })
	})
}

var refusedCredential = drill{fault: forgotten, cure: func(w *ward) { w.mend() }}

// nodeDrills are those of nodes that are lost or unwell.
var nodeDrills = map[string]drill{
	"node-lost/silent/offline": {
		fault: func(w *ward) { w.offline() },
		cure:  func(w *ward) { w.mend() },
	},
	"node-lost/silent/credential":                        refusedCredential,
	"operator/node-is-offline/its-credential-is-refused": refusedCredential,
	"node-lost/for-good/retired": {
		fault: func(w *ward) { w.retired(w.running) },
		cure:  func(w *ward) { w.replaces(w.about.ID) },
	},
	"node-lost/for-good/members-lost": {
		fault: func(w *ward) {
			node, instance := w.lost(w.running)
			w.mend = func() {
				_, err := gql.RetireNode(w.ctx, w.operator, gql.RetireNodeInput{NodeId: node, Lost: true,
					Reason: "burnt"})
				w.fine(err)
				w.replaces(instance)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"node-lost/unwell/rebooted": {
		fault: func(w *ward) {
			dead, _, _ := w.elsewhere(w.running)
			w.fine(dead.Kill())
			w.fine(shared.ReviveNode(w.ctx, dead.Name()))
		},
		cure: func(*ward) {},
	},
	"node-lost/unwell/cordoned": {
		quick: true,
		fault: func(w *ward) {
			_, err := gql.CordonNode(w.ctx, w.operator, gql.NodeOperateInput{NodeId: w.nodeID("node-1"),
				Reason: "a drill"})
			w.fine(err)
		},
		cure: func(w *ward) {
			_, err := gql.UncordonNode(w.ctx, w.operator, gql.NodeOperateInput{NodeId: w.nodeID("node-1"),
				Reason: "done"})
			w.fine(err)
		},
	},
	"operator/node-is-offline/another-agent-uses-the-state-directory": {
		fault: func(w *ward) {
			second, err := shared.Nodes[0].Program(supervise.Spec{Name: "agent-drill-second", Restart: supervise.Never,
				Command: append(w.agent("node-1", shared.URL), plain...)})
			w.fine(err)
			w.mend = func() { _ = second.Stop() }
		},
		cure: func(w *ward) { w.mend() },
	},
	"node-lost/unwell/condition": {
		fault: func(w *ward) {
			w.patience = 3 * time.Minute // an operator's own checks run once a minute
			check := filepath.Join(filepath.Dir(filepath.Dir(shared.LogDir())), "checks", "fan")
			w.fine(os.WriteFile(check, []byte("#!/bin/sh\necho the fan does not turn\nexit 2\n"), 0o755))
			w.mend = func() { w.fine(os.WriteFile(check, []byte("#!/bin/sh\necho it turns\n"), 0o755)) }
			w.later(func(context.Context) { _ = os.Remove(check) })
		},
		cure: func(w *ward) { w.mend() },
	},
	"operator/no-worker/stopped":       noWorker,
	"feeds-behind/no-reader/no-worker": noWorker,
}
