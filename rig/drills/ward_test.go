package drills_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/drills/walker"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// drillMost bounds a drill, its cleaning up apart, and operationMost what it waits for an operation.
	drillMost, operationMost = 6 * time.Minute, 150 * time.Second
	// backMost bounds how long capacity takes to be given back.
	backMost = 100 * time.Second
)

// ward is where a drill works: clients that record what they change, what the walk is about, and what has to be taken
// away again.
type ward struct {
	t       *testing.T
	ctx     context.Context
	walker  *walker.Walker
	about   walker.Subject
	request func() error // the refused request, which succeeds after the cure; nil for none
	mend    func()       // corrects the request, or ends the fault
	did     []string     // mutations since the fault
	cured   time.Time    // when the cure was done
	// patience is how long the drill waits if it takes longer than others by its nature; zero for the usual wait.
	patience time.Duration
	// operator and admin are a platform operator and an administrator of the demo's tenant.
	operator, admin recorder
	project, tenant string
	// smokes is the project of smoke launches, and system says that it is the platform's own, for system apps.
	smokes string
	system bool
}

// recorder is a client that records which mutations were called.
type recorder struct {
	*client.Client
	w *ward
}

// MakeRequest implements graphql.Client.
func (r recorder) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	if strings.HasPrefix(strings.TrimSpace(request.Query), "mutation") {
		r.w.did = append(r.w.did, strings.ToLower(request.OpName[:1])+request.OpName[1:])
	}
	return r.Client.MakeRequest(ctx, request, response)
}

func newWard(t *testing.T) *ward {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), drillMost)
	t.Cleanup(cancel)
	person, err := shared.As(ctx, shared.Demo.AdminID)
	require.NoError(t, err)
	w := &ward{t: t, ctx: ctx, project: shared.Demo.ProjectID, tenant: shared.Demo.TenantID,
		smokes: shared.Demo.LabProjectID}
	w.operator, w.admin = recorder{shared.Operator, w}, recorder{person, w}
	w.about.ProjectID, w.about.TenantID = w.project, w.tenant
	w.walker = &walker.Walker{URL: shared.URL, Operator: shared.Operator, Person: person, Since: time.Now(),
		Metrics:    func() []string { return metricsOf("server.log", "server-2.log") },
		ServerLogs: logs("server*.log"), AgentLogs: logs("agent-*.log")}
	return w
}

// logs are the paths of the programs' logs.
func logs(pattern string) func() []string {
	return func() []string {
		found, _ := filepath.Glob(filepath.Join(shared.LogDir(), pattern))
		return found
	}
}

// metricsOf are the addresses at which the servers' newest processes serve metrics.
func metricsOf(names ...string) (found []string) {
	for _, name := range names {
		content, _ := os.ReadFile(filepath.Join(shared.LogDir(), name))
		last := ""
		for line := range strings.Lines(string(content)) {
			var said struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving metrics" {
				last = said.Address
			}
		}
		if last != "" {
			found = append(found, last)
		}
	}
	return found
}

// explain shows the end of every log.
func (w *ward) explain() {
	for _, file := range logs("*.log")() {
		content, _ := os.ReadFile(file)
		var kept []string
		for line := range strings.Lines(string(content)) {
			if !strings.Contains(line, `"level":"INFO"`) {
				kept = append(kept, line)
			}
		}
		kept = kept[max(0, len(kept)-10):]
		w.t.Logf("---- %s\n%s", filepath.Base(file), strings.Join(kept, ""))
	}
}

// later undoes what a drill has done, with a context of its own.
func (w *ward) later(undo func(ctx context.Context)) {
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		undo(ctx)
	})
}

// fine requires no error.
func (w *ward) fine(err error) {
	w.t.Helper()
	require.NoError(w.t, err)
}

// sql runs a statement as the database's superuser.
func (w *ward) sql(statement string, args ...any) {
	w.t.Helper()
	conn, err := pgx.Connect(context.Background(), shared.AdminDSN())
	w.fine(err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(context.Background(), statement, args...)
	w.fine(err)
}

// connect opens a connection of the superuser's, which ends with the drill.
func (w *ward) connect() *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, shared.AdminDSN())
	w.fine(err)
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// rent takes a GPU, and gives it back when the drill is over: what runs there is torn down with it.
func (w *ward) rent() string {
	w.t.Helper()
	got, err := gql.RequestAllocation(w.ctx, w.admin, gql.RequestAllocationInput{ProjectId: w.project,
		Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1, IdempotencyKey: client.NewKey()})
	w.fine(err)
	id := got.RequestAllocation.Allocations[0].Id
	w.givesBack(id, w.admin)
	return id
}

// givesBack releases an allocation when the drill is over, and requires that it is: other drills count what is rented.
// What may be left of a member that was torn down by force keeps it for a while.
func (w *ward) givesBack(id string, as recorder) {
	w.later(func(ctx context.Context) {
		w.ctx, w.patience = ctx, backMost
		w.eventually("the allocation is given back", func() error {
			released, err := gql.ReleaseAllocation(ctx, as, gql.ReleaseAllocationInput{AllocationId: id,
				Reason: "the drill is over", IdempotencyKey: client.NewKey()})
			if err != nil && strings.Contains(err.Error(), "the allocation is RELEASED") {
				return nil // the drill did it
			}
			if err != nil {
				return err
			}
			ended, err := as.WaitOperation(ctx, released.ReleaseAllocation.Operation.Id, nil)
			if err == nil && ended.State != gql.OperationStateSucceeded {
				err = fmt.Errorf("the release is %s: %s", ended.State, ended.Message)
			}
			return err
		})
	})
}

// launching is a launch of the smallest app, as its caller changes it.
func (w *ward) launching(change func(*gql.LaunchInstanceInput)) (instance, operation string, err error) {
	in := gql.LaunchInstanceInput{ProjectId: w.project, AppSlug: "hello-cluster", Name: "drill-" + client.NewKey()[:10],
		Components: []gql.ComponentInput{{Key: "peer", Count: 1}}, IdempotencyKey: client.NewKey()}
	change(&in)
	got, err := gql.LaunchInstance(w.ctx, w.admin, in)
	if err != nil {
		return "", "", err
	}
	return got.LaunchInstance.Instance.Id, got.LaunchInstance.Operation.Id, nil
}

// launch launches the smallest app on capacity of its own, and makes the walk about the operation.
func (w *ward) launch() (instance, operation string) {
	w.t.Helper()
	allocation := w.rent()
	instance, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
		in.AllocationIds = []string{allocation}
	})
	w.fine(err)
	w.about.ID = operation
	return instance, operation
}

// running launches and waits until it runs.
func (w *ward) running() (instance string) {
	w.t.Helper()
	instance, operation := w.launch()
	w.succeeds(operation)
	return instance
}

// succeeds waits for an operation's end, and requires its success.
func (w *ward) succeeds(operation string) {
	w.t.Helper()
	ended := w.ends(operation)
	require.Equal(w.t, gql.OperationStateSucceeded, ended.State, "%s: %+v", ended.Message, ended.Error)
}

// ends waits for an operation's end.
func (w *ward) ends(operation string) *gql.OperationDetail {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, operationMost)
	defer cancel()
	ended, err := shared.Operator.WaitOperation(ctx, operation, nil)
	if err != nil && ctx.Err() != nil {
		shown, _ := gql.GetOperation(context.WithoutCancel(w.ctx), shared.Operator, operation)
		w.t.Fatalf("%s has not ended in %s: %+v", operation, operationMost, shown)
	}
	w.fine(err)
	return ended
}

// members are an instance's members that are there.
func (w *ward) members(instance string) (there []gql.Member) {
	w.t.Helper()
	page, err := gql.ListMembers(w.ctx, w.admin, instance, 100, "")
	w.fine(err)
	for _, edge := range page.Instance.Members.Edges {
		if edge.Node.Status != gql.MemberStatusRemoved {
			there = append(there, edge.Node)
		}
	}
	return there
}

// decommission requests the end of an instance.
func (w *ward) decommission(instance string, force bool) (operation string) {
	w.t.Helper()
	got, err := gql.DecommissionInstance(w.ctx, w.admin, gql.DecommissionInstanceInput{InstanceId: instance,
		Force: force, Reason: "the runbook says so", IdempotencyKey: client.NewKey()})
	w.fine(err)
	return got.DecommissionInstance.Operation.Id
}

// refused makes the walk about a request that is refused.
func (w *ward) refused(request func() error) {
	w.t.Helper()
	w.request = request
	w.about.Refused = request()
	require.Error(w.t, w.about.Refused, "the fault changes nothing")
}

// account makes a service account of the project's with keys, and a client that speaks for it.
func (w *ward) account(keys ...string) (id string, caller recorder) {
	w.t.Helper()
	made, err := gql.CreateServiceAccount(w.ctx, w.admin, gql.CreateServiceAccountInput{ProjectId: w.project,
		Name: "drill-" + client.NewKey()[:10], PermissionKeys: keys, IdempotencyKey: client.NewKey()})
	w.fine(err)
	id = made.CreateServiceAccount.Id
	return id, w.keyed(id, nil)
}

// keyed is a client with a new key of a service account.
func (w *ward) keyed(account string, until *time.Time) recorder {
	w.t.Helper()
	key, err := gql.CreateServiceAccountKey(w.ctx, w.admin, gql.CreateServiceAccountKeyInput{ServiceAccountId: account,
		ExpiresAt: until})
	w.fine(err)
	caller, err := client.New(shared.URL, client.Options{Token: key.CreateServiceAccountKey.Secret})
	w.fine(err)
	return recorder{caller, w}
}

func to[T any](value T) *T { return &value }
