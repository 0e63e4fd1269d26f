package contracttest_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/domain/repair"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/contracttest"
)

// The SDL as it is written, as it is published, and as clients of the first version know it.
const (
	written   = "../../graph/schema/*.graphql"
	published = "../../docs/api/schema.graphql"
	promised  = "../../docs/api/v1/schema.graphql"
)

var update = flag.Bool("update", false, "write the golden files")

func sdl(t *testing.T) *ast.Schema {
	t.Helper()
	schema, err := contracttest.LoadSchema(written)
	require.NoError(t, err)
	return schema
}

func TestEverythingInTheSDLIsDescribed(t *testing.T) {
	t.Parallel()
	var bare []string
	say := func(name, description string) {
		if strings.TrimSpace(description) == "" {
			bare = append(bare, name)
		}
	}
	for _, definition := range contracttest.Types(sdl(t)) {
		say(definition.Name, definition.Description)
		for _, value := range definition.EnumValues {
			say(definition.Name+"."+value.Name, value.Description)
		}
		for _, field := range definition.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			say(definition.Name+"."+field.Name, field.Description)
			for _, argument := range field.Arguments {
				say(definition.Name+"."+field.Name+"("+argument.Name+")", argument.Description)
			}
		}
	}
	require.Empty(t, bare)
}

// valued is a Go type that an enum is bound to.
type valued interface{ Values() []string }

// bound is the Go type of every enum.
var bound = map[string]valued{
	"ActionRisk":          lifecycle.ActionRisk(""),
	"AccountLimit":        lifecycle.AccountLimit(""),
	"SourceKind":          lifecycle.SourceKind(""),
	"SignaturePolicy":     lifecycle.SignaturePolicy(""),
	"ArtifactKind":        lifecycle.ArtifactKind(""),
	"SignatureState":      lifecycle.SignatureState(""),
	"PartRole":            lifecycle.PartRole(""),
	"EvidenceKind":        lifecycle.EvidenceKind(""),
	"CanaryVerdict":       lifecycle.CanaryVerdict(""),
	"AllocationStatus":    lifecycle.AllocationStatus(""),
	"CapacityShape":       lifecycle.CapacityShape(""),
	"ControlPlaneScope":   lifecycle.ControlPlaneScope(""),
	"DeadlineOutcome":     lifecycle.DeadlineOutcome(""),
	"DeliveryState":       lifecycle.DeliveryState(""),
	"Health":              lifecycle.Health(""),
	"InstanceStatus":      lifecycle.InstanceStatus(""),
	"IsolationClass":      isolation.Class(""),
	"IsolationWall":       isolation.Wall(""),
	"MemberProfile":       isolation.Profile(""),
	"MemberStatus":        lifecycle.MemberStatus(""),
	"NodeIsolation":       lifecycle.NodeIsolation(""),
	"NodeStatus":          lifecycle.NodeStatus(""),
	"NodeTaskKind":        lifecycle.NodeTaskKind(""),
	"NodeConditionEffect": nodehealth.Effect(""),
	"NodeConditionState":  nodehealth.State(""),
	"NodeTaskState":       lifecycle.NodeTaskState(""),
	"OperatingMode":       lifecycle.OperatingMode(""),
	"OperationKind":       lifecycle.OperationKind(""),
	"OperationState":      lifecycle.OperationState(""),
	"Outcome":             lifecycle.Outcome(""),
	"OrphanKind":          lifecycle.OrphanKind(""),
	"OutputStream":        lifecycle.OutputStream(""),
	"MetricsRange":        lifecycle.MetricsRange(""), "LogSource": lifecycle.LogSource(""),
	"PlanAction":      lifecycle.PlanAction(""),
	"PolicyEffect":    policy.Effect(""),
	"PolicyScope":     lifecycle.PolicyScope(""),
	"SecretAudience":  lifecycle.SecretAudience(""),
	"SecretDelivery":  lifecycle.SecretDelivery(""),
	"ShareStatus":     lifecycle.ShareStatus(""),
	"Stage":           lifecycle.Stage(""),
	"StepState":       lifecycle.StepState(""),
	"VerdictOutcome":  lifecycle.VerdictOutcome(""),
	"VerdictSource":   lifecycle.VerdictSource(""),
	"WebhookStatus":   lifecycle.WebhookStatus(""),
	"MemberFailure":   lifecycle.MemberFailure(""),
	"RepairMode":      repair.Mode(""),
	"UsageBasis":      metering.Basis(""),
	"UsageBearer":     metering.Bearer(""),
	"CapacityEffect":  rating.CapacityEffect(""),
	"PriceScope":      rating.Scope(""),
	"PriceMeasure":    rating.Measure(""),
	"BillingStatus":   rating.PeriodStatus(""),
	"StorageKind":     volume.Kind(""),
	"VolumeStatus":    volume.Status(""),
	"StatementFormat": rating.StatementFormat(""),
	"VolumeAccess":    volume.Access(""),
	"VolumeFinding":   volume.Finding(""),
	"BudgetScope":     spending.Scope(""),
	"BudgetSpan":      spending.Span(""),
	"BudgetOutcome":   spending.Outcome(""),
	"CostBy":          spending.By(""),
	"GapKind":         lifecycle.GapKind(""), "GapState": lifecycle.GapState(""),
	"OnboardingCondition": onboarding.Condition(""), "OnboardingVerdict": onboarding.Verdict(""),
	"TriageStand": lifecycle.TriageStand(""), "TriageEvidenceKind": lifecycle.TriageEvidenceKind(""),
}

func TestEnumsHaveTheValuesOfTheDomain(t *testing.T) {
	t.Parallel()
	var seen []string
	for _, definition := range contracttest.Types(sdl(t)) {
		if definition.Kind != ast.Enum {
			continue
		}
		seen = append(seen, definition.Name)
		require.Contains(t, bound, definition.Name, "name the Go type of the enum")
		var values []string
		for _, value := range definition.EnumValues {
			values = append(values, value.Name)
		}
		require.ElementsMatch(t, bound[definition.Name].Values(), values, definition.Name)
	}
	require.Len(t, seen, len(bound), "a Go type is listed whose enum is gone")
}

// rowsOfBooks are rows of append-only books, which are read by their lists alone: nothing is done to one of them.
var rowsOfBooks = map[string]bool{"Price": true, "BillingRun": true, "UsageRecord": true, "QuarantinedUsage": true}

func TestConnectionsFollowRelay(t *testing.T) {
	t.Parallel()
	schema := sdl(t)
	var connections int
	for _, definition := range contracttest.Types(schema) {
		if name, ok := strings.CutSuffix(definition.Name, "Connection"); ok {
			connections++
			require.Equal(t, "["+name+"Edge!]!", typeOf(t, definition, "edges"))
			require.Equal(t, "PageInfo!", typeOf(t, definition, "pageInfo"))
			edge := schema.Types[name+"Edge"]
			require.NotNil(t, edge, name)
			require.Equal(t, "String!", typeOf(t, edge, "cursor"))
			require.Equal(t, name+"!", typeOf(t, edge, "node"))
			if !rowsOfBooks[name] {
				require.Contains(t, schema.Types[name].Interfaces, "Node", "what is paged has a global id")
			}
		}
	}
	require.Positive(t, connections)
	info := schema.Types["PageInfo"]
	require.Equal(t, "Boolean!", typeOf(t, info, "hasNextPage"))
	require.Equal(t, "Boolean!", typeOf(t, info, "hasPreviousPage"))
	require.Equal(t, "String", typeOf(t, info, "startCursor"))
	require.Equal(t, "String", typeOf(t, info, "endCursor"))
}

func TestPagedFieldsTakeFirstWithADefaultAndAfter(t *testing.T) {
	t.Parallel()
	var paged int
	for _, definition := range contracttest.Types(sdl(t)) {
		for _, field := range definition.Fields {
			if !strings.HasSuffix(field.Type.Name(), "Connection") {
				continue
			}
			paged++
			name := definition.Name + "." + field.Name
			first, after := field.Arguments.ForName("first"), field.Arguments.ForName("after")
			require.NotNil(t, first, name)
			require.Equal(t, "Int", first.Type.String(), name)
			require.NotNil(t, first.DefaultValue, "%s: a page has a size even when nobody asks for one", name)
			require.NotNil(t, after, name)
			require.Equal(t, "String", after.Type.String(), name)
			require.Contains(t, first.Description, "1 to ", "%s: the cap is in the contract", name)
		}
	}
	require.Positive(t, paged)
}

func typeOf(t *testing.T, definition *ast.Definition, field string) string {
	t.Helper()
	found := definition.Fields.ForName(field)
	require.NotNil(t, found, "%s.%s", definition.Name, field)
	return found.Type.String()
}

func TestNamesFollowTheHouse(t *testing.T) {
	t.Parallel()
	schema := sdl(t)
	for _, definition := range contracttest.Types(schema) {
		if slices.Contains(definition.Interfaces, "Node") {
			require.Equal(t, "ID!", typeOf(t, definition, "id"))
		}
		if definition.Kind == ast.InputObject {
			require.True(t, strings.HasSuffix(definition.Name, "Input") || strings.HasSuffix(definition.Name, "Filter"),
				definition.Name)
		}
	}
	for _, field := range schema.Mutation.Fields {
		if input := field.Arguments.ForName("input"); input != nil && input.Type.Name() != "" {
			require.True(t, input.Type.NonNull, field.Name)
			require.Len(t, field.Arguments, 1, "%s takes one input, or plain arguments", field.Name)
		}
	}
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		for _, field := range root.Fields {
			require.True(t, field.Type.NonNull || strings.HasPrefix(field.Name, "__"),
				"%s: what is missing is an error, not null", field.Name)
		}
	}
}

// A tenant is tenantId. What bears the context of telemetry, whose name for it is org_id, has that beside it.
func TestATenantHasOneName(t *testing.T) {
	t.Parallel()
	other := regexp.MustCompile(`^(org|organi[sz]ation|account|customer)(Id|Slug|Name|s|)$`)
	var found []string
	for _, definition := range contracttest.Types(sdl(t)) {
		for _, field := range definition.Fields {
			if other.MatchString(field.Name) {
				found = append(found, definition.Name+"."+field.Name)
			}
			for _, argument := range field.Arguments {
				if other.MatchString(argument.Name) {
					found = append(found, definition.Name+"."+field.Name+"("+argument.Name+")")
				}
			}
		}
	}
	require.Equal(t, []string{"AuditEntry.orgId", "Event.orgId", "Operation.orgId"}, found)
	for _, bears := range []string{"AuditEntry", "Event", "Operation"} {
		for _, field := range []string{"tenantId", "projectId", "appSlug", "appInstanceId", "correlationId",
			"traceId"} {
			require.NotNil(t, sdl(t).Types[bears].Fields.ForName(field), "%s.%s", bears, field)
		}
	}
}

func TestThePublishedSchemaIsTheOneInForce(t *testing.T) {
	t.Parallel()
	now := contracttest.Print(sdl(t))
	if *update {
		require.NoError(t, os.WriteFile(published, now, 0o644))
	}
	kept, err := os.ReadFile(published)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(now), "write it again: go test ./internal/contracttest -update")
}

func TestNothingBreaksTheFirstVersion(t *testing.T) {
	t.Parallel()
	before, err := contracttest.LoadSchema(promised)
	require.NoError(t, err)
	require.Empty(t, contracttest.Breaking(before, sdl(t)))
}
