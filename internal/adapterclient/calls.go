package adapterclient

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Describe reads what the adapter states about itself. The answer must bear the adapter's name and a contract version
// that the platform speaks.
func (c *Client) Describe(ctx context.Context, target Target) (adapter.Description, error) {
	var out adapter.Description
	_, err := c.do(ctx, target, call{name: "describe", method: http.MethodGet, path: adapter.AdapterPath}, &out)
	if err != nil {
		return out, err
	}
	if out.Name != target.Name {
		return out, &Error{Kind: Invalid, Target: target, Err: fmt.Errorf("it calls itself %.80q", out.Name)}
	}
	for _, version := range out.ContractVersions {
		if slices.Contains(adapter.ContractVersions(), version) {
			return out, nil
		}
	}
	return out, &Error{Kind: Invalid, Target: target,
		Err: fmt.Errorf("it speaks none of the contracts %v", adapter.ContractVersions())}
}

// Plan requests what an operation would do. The error is of kind Unsupported when the adapter does not plan, as one of
// contract 1.0 does not.
func (c *Client) Plan(ctx context.Context, target Target, request adapter.PlanRequest, trace Trace) (adapter.PlanAnswer,
	error) {
	var out adapter.PlanAnswer
	_, err := c.do(ctx, target, call{name: "plan", method: http.MethodPost, path: adapter.PlansPath, body: request,
		trace: trace, timeout: actTimeout}, &out)
	if failed, ok := As(err); ok && slices.Contains(notPlanned, failed.Status) {
		failed.Kind = Unsupported
	}
	if err != nil {
		return adapter.PlanAnswer{}, err
	}
	return out, checkPlan(target, &out)
}

// notPlanned are the answers of an adapter that does not plan.
var notPlanned = []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}

// checkPlan refuses a plan that is outside of the contract.
func checkPlan(target Target, plan *adapter.PlanAnswer) error {
	var wrong string
	switch {
	case !plan.Verdict.Valid():
		wrong = fmt.Sprintf("the verdict %.40q is not in the contract", plan.Verdict)
	case plan.Verdict != adapter.VerdictSafe && len(plan.Reasons) == 0:
		wrong = fmt.Sprintf("the verdict %s has no reason", plan.Verdict)
	case len(plan.WorkLost) > adapter.MaxWork || len(plan.Reasons) > adapter.MaxReasons:
		wrong = fmt.Sprintf("it lists more than %d pieces of work or %d reasons", adapter.MaxWork, adapter.MaxReasons)
	case plan.WorkTotal < len(plan.WorkLost):
		wrong = "it lists more work than it counts"
	default:
		return nil
	}
	return &Error{Kind: Invalid, Target: target, Status: http.StatusOK,
		Err: fmt.Errorf("the plan is outside of the contract: %s", wrong)}
}

// Dispatch sends an operation; done reports that the adapter had ended it already.
func (c *Client) Dispatch(ctx context.Context, target Target, dispatch adapter.Dispatch) (status adapter.Status,
	done bool, err error) {
	code, err := c.do(ctx, target, call{
		name:   "dispatch",
		method: http.MethodPut, path: adapter.OperationPath(dispatch.OperationID), body: dispatch,
		trace: Trace{CorrelationID: dispatch.CorrelationID, Traceparent: dispatch.Traceparent, About: about(dispatch)},
	}, &status)
	if err != nil {
		return status, false, err
	}
	return status, code == http.StatusOK, checkStatus(target, dispatch.OperationID, &status)
}

// about returns what a dispatch is about, for its line.
func about(d adapter.Dispatch) []slog.Attr {
	return append(telemetry.Context(d.Instance.TenantID, d.Instance.ProjectID, d.Instance.App, d.Instance.ID),
		slog.String("operation_id", d.OperationID))
}

// Status reads the state of an operation.
func (c *Client) Status(ctx context.Context, target Target, operation string, trace Trace) (adapter.Status, error) {
	var out adapter.Status
	_, err := c.do(ctx, target, call{name: "status", method: http.MethodGet, path: adapter.OperationPath(operation),
		trace: trace}, &out)
	if err != nil {
		return out, err
	}
	return out, checkStatus(target, operation, &out)
}

// Changes reads the feed of operations after the cursor, waiting up to wait for one to change.
func (c *Client) Changes(ctx context.Context, target Target, cursor string, wait time.Duration) (adapter.OperationsPage,
	error) {
	var out adapter.OperationsPage
	_, err := c.do(ctx, target, call{
		name:   "changes",
		method: http.MethodGet, path: adapter.ChangesPath(cursor, wait), timeout: wait + feedMargin,
	}, &out)
	if err != nil {
		return out, err
	}
	if out.Epoch == "" || out.Cursor == "" || len(out.Operations) > adapter.MaxPage {
		return out, &Error{Kind: Invalid, Target: target, Status: http.StatusOK,
			Err: fmt.Errorf("a page of the feed lacks its epoch or cursor, or is longer than %d", adapter.MaxPage)}
	}
	return out, nil
}

// Cancel requests that an operation stops if that is still safe.
func (c *Client) Cancel(ctx context.Context, target Target, operation string, attempt int,
	trace Trace) (adapter.CancelResult, error) {
	var out adapter.CancelResult
	_, err := c.do(ctx, target, call{
		name:   "cancel",
		method: http.MethodPost, path: adapter.CancelPath(operation), body: adapter.CancelRequest{Attempt: attempt},
		trace: trace,
	}, &out)
	if err == nil && !out.Outcome.Valid() {
		err = &Error{Kind: Invalid, Target: target, Status: http.StatusOK,
			Err: fmt.Errorf("unknown outcome %.40q", out.Outcome)}
	}
	return out, err
}

// Observe reads what the adapter observes of an instance now; platformToken is for its own calls.
func (c *Client) Observe(ctx context.Context, target Target, instance, platformToken string,
	trace Trace) (adapter.Observation, error) {
	var out adapter.Observation
	_, err := c.do(ctx, target, call{
		name:   "observe",
		method: http.MethodGet, path: adapter.InstancePath(instance), platformToken: platformToken, trace: trace,
	}, &out)
	if err == nil && (out.InstanceID != instance || !out.Health.Valid()) {
		err = &Error{Kind: Invalid, Target: target, Status: http.StatusOK,
			Err: fmt.Errorf("the observation is not one of this instance, or its health is unknown to the contract")}
	}
	return out, err
}

// maxUsageCursor is the longest cursor of usage, in bytes: the longest that the kit takes back.
const maxUsageCursor = 200

// UsagePage is a page of metered usage, with its records as they came: one that cannot be read stops no other.
type UsagePage struct {
	Cursor  string            `json:"cursor"`
	Records []json.RawMessage `json:"records"`
}

// Usage reads an instance's metered usage after a cursor; platformToken is for the adapter's own calls.
func (c *Client) Usage(ctx context.Context, target Target, instance, cursor, platformToken string,
	trace Trace) (*UsagePage, error) {
	out := &UsagePage{}
	_, err := c.do(ctx, target, call{
		name:   "usage",
		method: http.MethodGet, path: adapter.UsagePath(instance, cursor), platformToken: platformToken, trace: trace,
	}, out)
	if err == nil && (len(out.Records) > adapter.MaxUsageRecords || len(out.Cursor) > maxUsageCursor ||
		strings.ContainsRune(out.Cursor, 0) || len(out.Records) > 0 && (out.Cursor == cursor || out.Cursor == "")) {
		err = &Error{Kind: Invalid, Target: target, Status: http.StatusOK,
			Err: fmt.Errorf("a page of usage has more than %d "+
				"records, or records without a new cursor", adapter.MaxUsageRecords)}
	}
	return out, err
}

// Act passes an app action on.
func (c *Client) Act(ctx context.Context, target Target, action string, request adapter.ActionRequest,
	trace Trace) (adapter.ActionResult, error) {
	var out adapter.ActionResult
	_, err := c.do(ctx, target, call{
		name:   "act",
		method: http.MethodPost, path: adapter.ActionPath(request.Instance.ID, action), body: request, trace: trace,
		timeout: actTimeout,
	}, &out)
	return out, err
}

// checkStatus refuses a status that is outside of the contract.
func checkStatus(target Target, operation string, status *adapter.Status) error {
	if status.OperationID != operation || !status.State.Valid() || status.Attempt < 1 {
		return &Error{Kind: Invalid, Target: target, Status: http.StatusOK,
			Err: fmt.Errorf("the status is not one of operation %s", operation)}
	}
	return nil
}
