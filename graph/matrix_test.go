package graph_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/graph/generated/exec"
)

var updateMatrix = flag.Bool("update-matrix", false, "rewrite docs/iam-matrix.md")

// columns are the roles and ceilings of the matrix, in its order; those of machines say what they can hold at most.
var columns = []authz.Role{"tenant_admin", "project_admin", "project_member", "project_viewer", "service_account",
	"platform_operator",
	"app_publisher", "operation", "node"}

// kindFields are the mutations that request the operations of each kind.
var kindFields = map[lifecycle.OperationKind]string{
	lifecycle.InstanceCreate: "launchInstance", lifecycle.InstanceDecommission: "decommissionInstance",
	lifecycle.InstanceUpgrade:  "upgradeInstance",
	lifecycle.InstanceRollback: "rollbackInstance", lifecycle.MembersAdd: "addMembers",
	lifecycle.MemberDrain:  "drainMember",
	lifecycle.MemberCordon: "cordonMember", lifecycle.MemberUncordon: "uncordonMember",
	lifecycle.MemberLabel:  "labelMember",
	lifecycle.MemberRemove: "removeMember", lifecycle.MemberReplace: "replaceMember",
	lifecycle.MemberRecover:     "recoverMember",
	lifecycle.AllocationRelease: "releaseAllocation",
}

// keyNames finds permission keys in a description, which names them after "Key:".
var keyNames = regexp.MustCompile(`(?:<family>|[a-z][a-z_]*)(?:\.[a-z_]+)+`)

// fieldKeys are the keys that a root field's description names, in its order.
func fieldKeys(field *ast.FieldDefinition) []string {
	_, said, ok := strings.Cut(field.Description, "Key: ")
	if !ok {
		_, said, _ = strings.Cut(field.Description, "Keys: ")
	}
	return keyNames.FindAllString(said, -1)
}

// keyOf returns the key of a name; one key of a family represents all of them, which are granted alike.
func keyOf(t *testing.T, name string) authz.Key {
	t.Helper()
	key, err := authz.ParseKey(strings.Replace(name, "<family>", "apps", 1))
	require.NoError(t, err)
	return key
}

// row is a line of the matrix: a check where the role, or ceiling, holds the key.
func row(t *testing.T, what, name string) string {
	t.Helper()
	line := fmt.Sprintf("| %s | `%s` |", what, name)
	for _, role := range columns {
		mask := authz.RoleMask(role)
		held := mask.Has(keyOf(t, name))
		if suffix, ok := strings.CutPrefix(name, "<family>."); ok {
			for _, key := range authz.FamilyKeys(suffix) {
				require.Equal(t, held, mask.Has(key), "%s holds %s of one family and not of another", role, suffix)
			}
		}
		line += map[bool]string{true: " ✔ |", false: " |"}[held]
	}
	return line + "\n"
}

func TestTheIAMMatrixIsWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	schema := exec.NewExecutableSchema(exec.Config{}).Schema()
	var about, others strings.Builder
	seen := map[string]bool{}
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		fields := slices.Clone(root.Fields)
		slices.SortFunc(fields, func(a, b *ast.FieldDefinition) int { return strings.Compare(a.Name, b.Name) })
		for _, field := range fields {
			for _, name := range fieldKeys(field) {
				into := &others
				if strings.HasPrefix(name, "<family>.") || strings.HasPrefix(name, "apps.") ||
					strings.HasPrefix(name, "scheduler.") {
					into = &about
				}
				// both families are named: one line says it
				if strings.HasPrefix(name, "apps.") || strings.HasPrefix(name, "scheduler.") {
					name = "<family>" + name[strings.Index(name, "."):]
				}
				if line := row(t, fmt.Sprintf("%s `%s`", strings.ToLower(root.Name), field.Name), name); !seen[line] {
					seen[line] = true
					into.WriteString(line)
				}
			}
		}
	}
	head := "| field | key |"
	rule := "| --- | --- |"
	for _, role := range columns {
		head, rule = head+" "+string(role)+" |", rule+" :-: |"
	}
	page := fmt.Sprintf(matrixPage, head, rule, about.String(), actions(t), head, rule, others.String())
	path := filepath.Join("..", "docs", "iam-matrix.md")
	if *updateMatrix {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), page,
		"who may do what has changed: read the difference, then run go test ./graph -run IAMMatrix -update-matrix")
}

// actions returns the lines of what only apps declare: the keys of their family that no field requires.
func actions(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for _, suffix := range []string{"queue.submit", "queue.read", "queue.cancel", "node.read", "node.operate"} {
		lines.WriteString(row(t, "an app's action that declares it", "<family>."+suffix))
	}
	return lines.String()
}

func TestEveryKindOfOperationIsAskedForWithTheKeyOfItsField(t *testing.T) {
	t.Parallel()
	schema := exec.NewExecutableSchema(exec.Config{}).Schema()
	for _, effects := range lifecycle.Kinds() {
		field := schema.Mutation.Fields.ForName(kindFields[effects.Kind])
		require.NotNil(t, field, effects.Kind)
		want := effects.Permission
		if effects.Wire != "" {
			want = "<family>." + want
		}
		require.Equal(t, want, fieldKeys(field)[0], effects.Kind)
	}
}

// TestTheSourceDocumentsActorModelHolds holds the policy to the three sentences of the actor model.
func TestTheSourceDocumentsActorModelHolds(t *testing.T) {
	t.Parallel()
	managing := []string{"instance.read", "instance.create", "instance.update", "instance.delete", "node.read",
		"node.operate", "member.add",
		"member.remove", "member.replace", "member.recover"}
	for _, suffix := range managing {
		for _, key := range authz.FamilyKeys(suffix) {
			for _, role := range []authz.Role{"tenant_admin", "project_admin", "service_account"} {
				mask := authz.RoleMask(role)
				require.True(t, mask.Has(key), "%s %s", role, key)
			}
			for _, role := range []authz.Role{"project_member", "project_viewer"} {
				mask := authz.RoleMask(role)
				require.Equal(t, strings.HasSuffix(suffix, ".read"), mask.Has(key), "%s %s", role, key)
			}
		}
	}
	require.NoError(t, authz.Role("tenant_admin").BindableAt(authz.ScopeTenant))
	require.Error(t, authz.Role("tenant_admin").BindableAt(authz.ScopePlatform), "within the tenant boundary")
	require.NoError(t, authz.Role("project_admin").BindableAt(authz.ScopeProject))
	robot := authz.NewActor(authz.Subject{Kind: authz.KindServiceAccount, TenantID: "ten_1", ProjectID: "prj_1"}, nil,
		[]string{"apps.instance.create"}, time.Now())
	require.True(t, robot.Allows(authz.AppsInstanceCreate, "ten_1", "prj_1"))
	require.False(t, robot.Allows(authz.AppsInstanceCreate, "ten_1", "prj_2"), "only inside its own project")
	require.False(t, robot.Allows(authz.AppsInstanceDelete, "ten_1", "prj_1"), "only what its list allows")
}

// matrixPage is the document around the tables.
const matrixPage = `# Who may do what

Made from the code by ` + "`go test ./graph -run IAMMatrix -update-matrix`" +
	`, and held to it by the same test: the fields and their keys are those of the
public schema, the checks those of the compiled policy. The keys are in [authz/keys.go](../authz/keys.go) with what each allows; see
[the guide](guides/permissions.md) for how they are held.

A check below a role of people says that the role holds the key where it is bound: a tenant admin in the tenant and all its projects, a project
admin in its project. Below **service_account** it says that an account's allow-list may name the key, below **operation** that an operation's token
may carry it, and below **node** that a node's credential holds it; these never reach beyond their project, instance or node. What stands for
` + "`<family>`" + ` is ` + "`apps`" + ` or ` + "`scheduler`" + `, as the app's manifest says.

## Instances, members and what their apps do

%s
%s
%s%s
## Everything else

%s
%s
%s`
