package kept_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// Who has the same rights is shown what another was answered; who has others is not, though both may see it.
func TestAnAnswerIsSharedByRights(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	of, answers := h.instances[0], h.resolver.Answers()
	viewers, admins, elsewhere := []int{1, 7}, []int{0, 6}, h.callers[4]
	for _, each := range append(viewers, admins...) { // their scopes are written, and their rights known
		h.ask(t, h.kept, h.callers[each], documents[1], of)
		h.ask(t, h.kept, h.callers[each], documents[1], of)
	}
	want := h.ask(t, h.kept, h.callers[viewers[0]], documents[0], of)
	before, fresh := answers.Shown(), answers.Fresh()
	require.Equal(t, want, h.ask(t, h.kept, h.callers[viewers[1]], documents[0], of))
	require.Equal(t, before+1, answers.Shown(), "the other viewer's first question was read")
	require.Equal(t, want, h.ask(t, h.kept, h.callers[admins[0]], documents[0], of))
	require.Equal(t, []int64{before + 1, fresh + 1}, []int64{answers.Shown(), answers.Fresh()},
		"an admin was shown what a viewer was answered")
	require.Equal(t, want, h.ask(t, h.kept, h.callers[admins[1]], documents[0], of))
	require.Equal(t, before+2, answers.Shown())
	require.NotContains(t, h.ask(t, h.kept, elsewhere, documents[0], of), of.ID, "somebody of another tenant")

	h.SQL(`UPDATE role_binding SET role = 'app_publisher' WHERE user_id = $1`, h.people[viewers[1]].ID)
	require.Equal(t, h.ask(t, h.executor, h.callers[viewers[1]], documents[0], of),
		h.ask(t, h.kept, h.callers[viewers[1]], documents[0], of))
	require.Equal(t, want, h.ask(t, h.kept, h.callers[viewers[0]], documents[0], of))
	require.Equal(t, before+3, answers.Shown(), "the rights of another decide")
}

// One person with rights of two projects is another than one who has those of one.
func TestMoreRightsAreOtherRights(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	h.login(h.User(nil, platformtest.In(authz.ProjectViewer, h.projects[0])))
	h.login(h.User(nil, platformtest.In(authz.ProjectViewer, h.projects[0]),
		platformtest.In(authz.ProjectViewer, h.projects[1])))
	for range 3 {
		for _, caller := range h.callers[len(h.callers)-2:] {
			h.ask(t, h.kept, caller, documents[2], h.instances[0])
		}
	}
	kept, _ := h.resolver.Answers().Size()
	require.Equal(t, 2, kept)
}

// Nothing is proved to whom no binding of their own gives the project, whatever they see there by a share.
func TestNothingIsProvedWithoutABindingOfOnesOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	of := h.instances[0]
	h.SQL(`INSERT INTO control_plane_share (id, tenant_id, project_id, instance_id, owner_project_id, status,
		created_at)
		VALUES (platform.mint('cps'), $1, $2, $3, $4, 'ATTACHED',
		now())`, h.projects[1].TenantID, h.projects[1].ID, of.ID, of.ProjectID)
	h.login(h.User(nil, platformtest.In(authz.ProjectAdmin, h.projects[1])))
	for who, holds := range map[int]bool{0: true, 1: true, 2: true, 3: false, 4: false, 5: true,
		len(h.callers) - 1: false} {
		// the scope is written
		h.ask(t, h.kept, h.callers[who], `{ instances(projectId: $project) { edges { cursor } } }`, of)
		for _, about := range []tx.Subject{tx.InstanceSubject(ids.ID(of.ID)),
			tx.InstancesSubject(tx.Listed{Project: ids.ID(of.ProjectID), Most: 5})} {
			proof, err := h.DB.Prove(h.callers[who], about)
			require.NoError(t, err)
			require.Equal(t, holds, proof.Holds(), "%d", who)
		}
	}
}

// No kept answer rests on a share: for a caller with a binding in the owner's project, whatever it gives, kept and
// computed answers agree before a share, with it and after it.
func TestAShareIsNoPartOfARight(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	of := h.instances[0]
	for _, role := range []authz.Role{authz.AppPublisher, authz.ProjectViewer} {
		h.login(h.User(nil, platformtest.In(role, h.projects[0]), platformtest.In(authz.ProjectAdmin, h.projects[1])))
	}
	asked := h.callers[len(h.callers)-2:]
	same := func() {
		t.Helper()
		for _, document := range documents {
			for _, caller := range append(asked, asked...) {
				require.Equal(t, inOrder(t, h.ask(t, h.executor, caller, document, of)),
					inOrder(t, h.ask(t, h.kept, caller, document, of)))
			}
		}
	}
	same()
	h.SQL(`INSERT INTO control_plane_share (id, tenant_id, project_id, instance_id, owner_project_id, status,
		created_at)
		VALUES (platform.mint('cps'), $1, $2, $3, $4, 'ATTACHED',
		now())`, h.projects[1].TenantID, h.projects[1].ID, of.ID, of.ProjectID)
	same()
	h.SQL(`UPDATE control_plane_share SET status = 'DETACHED' WHERE instance_id = $1`, of.ID)
	same()
}

// reply is an answer with what it refused.
type reply struct {
	Data   json.RawMessage
	Errors []refusal
}

type refusal struct {
	Message    string
	Path       []any
	Extensions map[string]any
}

// inOrder returns an answer with its errors in the order of their paths: two fields are refused in any order.
func inOrder(t *testing.T, answer string) (out reply) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(answer), &out))
	slices.SortFunc(out.Errors, func(a, b refusal) int {
		return strings.Compare(fmt.Sprint(a.Path...), fmt.Sprint(b.Path...))
	})
	return out
}
