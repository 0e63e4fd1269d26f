package graph

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/transport"
)

// selecting returns a selection of all fields; an object in below is selected with the text there.
func selecting(fields rows.Fields, below map[string]string) string {
	deeper := map[string][]string{}
	for path := range fields {
		if object, field, ok := strings.Cut(path, "."); ok {
			deeper[object] = append(deeper[object], field)
		}
	}
	out := []string{"__typename"}
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case below[path] != "":
			out = append(out, path+" { "+below[path]+" }")
		case deeper[path] != nil:
			slices.Sort(deeper[path])
			out = append(out, path+" { "+strings.Join(deeper[path], " ")+" }")
		case !strings.Contains(path, "."):
			out = append(out, path)
		}
	}
	return strings.ReplaceAll(strings.Join(out, " "), "runtimeState", "runtimeState { summary }")
}

// briefly selects all fields of a brief list.
func briefly() string {
	return selecting(instance.BriefFields, map[string]string{"failure": "code message owner retryable",
		"lastOperation": selecting(operation.BriefFields, map[string]string{"steps": "id"})})
}

// documented gives an instance and its last operation every document that a brief list leaves out.
func documented(kit *platformtest.Kit, id string) {
	kit.SQL(`UPDATE instance SET config = '{"a": 1}', drift = '[{"code": "X", "message": "m"}]',
		roles = '[{"componentKey": "head", "displayName": "Head", "desired": 2, "current": 1, "healthy": 1, "summary": "s"}]',
		capacity_intent = '{"head": {"shape": "BAREMETAL"}}', repair = '{"mode": "AUTOMATIC", "budget": 7}',
		volumes = '[{"slot": "s", "volumeId": "vol_00000000000000000000000001"}]' WHERE id = $1`, id)
	kit.SQL(`UPDATE operation SET desired_change = '{"b": 2}', targets = '["mem_00000000000000000000000001"]'
		WHERE instance_id = $1`, id)
}

func TestABriefListSaysWhatAWholeOneSays(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	documented(kit, string(full.ID))
	c := newComparison(t, kit, caller)
	list := func(selection string) string {
		return fmt.Sprintf(`{ instances(projectId: %q) { edges { cursor node { %s } } pageInfo { endCursor } } }`,
			full.ProjectID, selection)
	}
	brief := c.run(t, c.joined, list(briefly()))
	whole := c.run(t, c.joined, list(briefly()+" repair { budget }"))
	require.Empty(t, whole.Errors)
	require.Equal(t, int64(7), gjson.GetBytes(whole.Data,
		"instances.edges.#(node.status==RUNNING).node.repair.budget").Int())
	require.Equal(t, string(brief.Data), strings.NewReplacer(`,"repair":{"budget":7}`, "", `,"repair":{"budget":3}`,
		"").Replace(string(whole.Data)))
}

// filled gives every column that a page shows of an instance and its neighbours a value that is not an empty one.
func filled(kit *platformtest.Kit, id string) {
	documented(kit, id)
	kit.SQL(`UPDATE instance SET last_operation_id = (SELECT max(id) FROM operation WHERE instance_id = $1),
		failure_retryable = true,
		generation = 3, smoke = true, system = true, observed_at = now(), released_at = now(), unserved_at = now(),
		repair_stopped = 'r', correlation_id = 'c', runtime_backend = 'b', roles = jsonb_set(roles, '{0,runtimeState}',
		'{"summary": "s"}') WHERE id = $1`, id)
	kit.SQL(`UPDATE member SET cordoned = true, health_message = 'h', ordinal = ordinal + 10, labels = '{"a": "b"}'
		WHERE instance_id = $1`, id)
	kit.SQL(`UPDATE operation SET percent = 3, phase = 'p', outcome = 'FORCED', started_at = now(), ended_at = now(),
		reason = 'r'
		WHERE instance_id = $1`, id)
	kit.SQL(`UPDATE operation_step SET attempt = 2, ordinal = ordinal + 10, ended_at = now(), evidence = '{"e": 1}'`)
	kit.SQL(`UPDATE app_instance_event SET member_id = (SELECT min(id) FROM member WHERE instance_id = $1),
		payload = '{"p": 1}',
		operation_id = (SELECT max(id) FROM operation WHERE instance_id = $1) WHERE instance_id = $1`, id)
}

// emptyLeaves returns the paths of values that a column which was not read would have too.
func emptyLeaves(value gjson.Result, path string) (empty []string) {
	if !value.IsObject() && !value.IsArray() {
		if value.Type == gjson.Null || value.Type == gjson.False || value.String() == "" || value.String() == "0" ||
			strings.HasPrefix(value.String(), "0001-01-01") {
			empty = append(empty, path)
		}
		return empty
	}
	value.ForEach(func(key, below gjson.Result) bool {
		empty = append(empty, emptyLeaves(below, path+"."+key.String())...)
		return true
	})
	return empty
}

func TestAPageOfPartsSaysWhatOneOfWholeRowsSays(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	filled(kit, string(full.ID))
	c := newComparison(t, kit, caller)
	page := func(more map[string]string) gjson.Result {
		document := fmt.Sprintf(`{ instance(id: %q) { %s %s members { edges { cursor node { %s %s } } pageInfo { endCursor } }
			events { edges { cursor node { %s %s } } } } }`, full.ID,
			selecting(instance.PageFields, map[string]string{"failure": "code message owner retryable",
				"lastOperation": more["operation"] + selecting(operation.BriefFields,
					map[string]string{"steps": more["step"] + selecting(operation.StepFields, nil)}),
				"allocations": "id", "operations": "edges { node { id } }", "blockers": "code", "orphans": "id"}),
			more["instance"],
			selecting(instance.MemberFields, map[string]string{"allocation": "id", "node": "id"}), more["member"],
			selecting(event.BriefFields, nil), more["event"])
		got := c.run(t, c.executor, document)
		require.Empty(t, got.Errors)
		return gjson.GetBytes(got.Data, "instance")
	}
	parts := page(nil)
	require.Empty(t, emptyLeaves(parts, ""))
	for _, one := range []string{"instance", "member", "event", "operation", "step"} {
		more := map[string]string{one: " mark: " + map[string]string{"instance": "repair { budget }",
			"member": "labels", "event": "correlationId", "operation": "reason", "step": "evidence"}[one] + " "}
		whole := page(more).Raw
		marks := regexp.MustCompile(`,?"mark":(\{[^}]*\}|"[^"]*")`)
		require.Regexp(t, marks, whole, one)
		require.JSONEq(t, parts.Raw, strings.ReplaceAll(marks.ReplaceAllString(whole, ""), "{,", "{"), one)
	}
}

func TestWhatAPageLeavesOutIsReadWhereverItIsSelected(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	filled(kit, string(full.ID))
	kit.SQL(`UPDATE member SET last_operation_id = (SELECT last_operation_id FROM instance WHERE id = $1)
		WHERE instance_id = $1`, full.ID)
	c := newComparison(t, kit, caller)
	for selection, want := range map[string][2]string{
		`drift { code }`:                        {"drift.0.code", "X"},
		`... on Instance { repair { budget } }`: {"repair.budget", "7"},
		`roles { capacityIntent { shape } }`: {"roles.0.capacityIntent.shape",
			"BAREMETAL"},
		`members { edges { node { labels } } }`: {"members.edges.0.node.labels.a",
			"b"},
		`members { ... { edges { node { ...M } } } }`: {"members.edges.0.node.labels.a",
			"b"},
		`a: members { edges { node { id } } } members { edges { node { labels } } }`: {"members.edges.0.node.labels.a",
			"b"},
		`lastOperation { reason }`:              {"lastOperation.reason", "r"},
		`lastOperation { steps { evidence } }`:  {"lastOperation.steps.0.evidence.e", "1"},
		`events { edges { node { appSlug } } }`: {"events.edges.0.node.appSlug", full.AppSlug},
		// the same operation by another way
		`lastOperation { id } members { edges { node { lastOperation { reason } } } }`:                              {"members.edges.0.node.lastOperation.reason", "r"},
		`lastOperation { reason steps { id } } members { edges { node { lastOperation { steps { evidence } } } } }`: {"members.edges.0.node.lastOperation.steps.0.evidence.e", "1"},
	} {
		document := fmt.Sprintf(`{ instance(id: %q) { %s } }`, full.ID, selection)
		if strings.Contains(selection, "...M") {
			document += " fragment M on Member { labels }"
		}
		for _, engine := range []*transport.Engine{c.joined, c.executor} {
			got := c.run(t, engine, document)
			require.Empty(t, got.Errors, selection)
			require.Equal(t, want[1], gjson.GetBytes(got.Data, "instance."+want[0]).String(), "%s: %s", selection, got.Data)
		}
	}
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
