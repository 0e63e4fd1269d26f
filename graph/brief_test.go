package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

// briefly selects all fields of a brief list.
func briefly() string {
	out, below := []string{"__typename"}, map[string][]string{}
	for _, path := range instance.BriefFields {
		if object, field, ok := strings.Cut(path, "."); ok {
			below[object] = append(below[object], field)
		}
	}
	for _, path := range instance.BriefFields {
		switch fields := below[path]; {
		case fields != nil:
			out = append(out, path+" { "+strings.Join(fields, " ")+" }")
		case !strings.Contains(path, "."):
			out = append(out, path)
		}
	}
	return strings.Join(out, " ")
}

// documented gives an instance and its last operation every document that a brief list leaves out.
func documented(kit *platformtest.Kit, id string) {
	kit.SQL(`UPDATE instance SET config = '{"a": 1}', drift = '[{"code": "X", "message": "m"}]',
		roles = '[{"componentKey": "head", "displayName": "Head", "desired": 2, "current": 1, "healthy": 1, "summary": "s"}]',
		capacity_intent = '{"head": {"shape": "BAREMETAL"}}', repair = '{"mode": "AUTOMATIC", "budget": 7}',
		volumes = '[{"slot": "s", "volumeId": "vol_00000000000000000000000001"}]' WHERE id = $1`, id)
	kit.SQL(`UPDATE operation SET desired_change = '{"b": 2}', targets = '["mem_00000000000000000000000001"]' WHERE instance_id = $1`, id)
}

func TestABriefListSaysWhatAWholeOneSays(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	documented(kit, string(full.ID))
	c := newComparison(t, kit, caller)
	list := func(selection string) string {
		return fmt.Sprintf(`{ instances(projectId: %q) { edges { cursor node { %s } } pageInfo { endCursor } } }`, full.ProjectID, selection)
	}
	brief := c.run(t, c.joined, list(briefly()))
	whole := c.run(t, c.joined, list(briefly()+" repair { budget }"))
	require.Empty(t, whole.Errors)
	require.Equal(t, int64(7), gjson.GetBytes(whole.Data, "instances.edges.#(node.status==RUNNING).node.repair.budget").Int())
	require.Equal(t, string(brief.Data), strings.NewReplacer(`,"repair":{"budget":7}`, "", `,"repair":{"budget":3}`, "").Replace(string(whole.Data)))
}

func TestWhatABriefListLeavesOutIsReadWhereverItIsSelected(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	documented(kit, string(full.ID))
	c := newComparison(t, kit, caller)
	for selection, want := range map[string][2]string{
		`config`:                        {"config.a", "1"},
		`id ... on Instance { config }`: {"config.a", "1"},
		`id ... on Node { ... on Instance { config } }`: {"config.a", "1"},
		`...F`:                                {"config.a", "1"},
		`id status: config`:                   {"status.a", "1"},
		`roles { capacityIntent { shape } }`:  {"roles.0.capacityIntent.shape", "BAREMETAL"},
		`drift { code }`:                      {"drift.0.code", "X"},
		`volumes { slot }`:                    {"volumes.0.slot", "s"},
		`lastOperation { desiredChange }`:     {"lastOperation.desiredChange.b", "2"},
		`lastOperation { ... { targetIds } }`: {"lastOperation.targetIds.0", "mem_00000000000000000000000001"},
		`lastOperation { evidence }`:          {"lastOperation.evidence.a.1", "b"},
	} {
		document := fmt.Sprintf(`{ instances(projectId: %q, filter: {statuses: [RUNNING]}) { edges { node { %s } } } }`, full.ProjectID, selection)
		if selection == "...F" {
			document += " fragment F on Instance { id config }"
		}
		got := c.run(t, c.joined, document)
		require.Empty(t, got.Errors, selection)
		require.Equal(t, want[1], gjson.GetBytes(got.Data, "instances.edges.0.node."+want[0]).String(), "%s: %s", selection, got.Data)
	}
}
