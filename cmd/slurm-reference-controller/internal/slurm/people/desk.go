package people

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// taskTime bounds a task on one member.
	taskTime = 30 * time.Second
	// admitTime bounds what the controller does: an association takes slurmdbd a moment.
	admitTime = 80 * time.Second
	// parallelMembers is how many members receive an account at once.
	parallelMembers = 8
	// maxTold bounds what is remembered; beyond it all is forgotten, and members receive accounts again without harm.
	maxTold = 100_000
)

// Desk lets people in. It remembers which members have whose account, so that a person who is known everywhere costs a
// call of the controller alone; what it forgets with its process it does again.
type Desk struct {
	mu   sync.Mutex
	told map[told]bool
}

type told struct {
	member string
	id     int
}

// NewDesk returns a desk that has let no one in yet.
func NewDesk() *Desk { return &Desk{told: map[told]bool{}} }

// Admit makes the requester known in the whole cluster, and returns them; nil for a requester without an account. A
// worker or login that does not answer now gets the account when the person or the member itself comes again.
func (d *Desk) Admit(ctx context.Context, call *adapter.Call) (*Person, error) {
	p, err := Of(call)
	if err != nil || p == nil {
		return nil, err
	}
	controllers := call.Of(layout.ComponentController)
	if len(controllers) == 0 {
		return nil, adapter.Reject("NO_CONTROLLER", "members", "the cluster has no controller")
	}
	result, err := call.Try(ctx, controllers[0], "admit", p.admit(), adapter.Within(admitTime))
	if err != nil {
		return nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, refused(*p, result)
	}
	d.tell(ctx, call, *p, controllers[0].ID)
	return p, nil
}

// refused says why somebody could not be let in.
func refused(p Person, result adapter.TaskResult) error {
	why := strings.TrimSpace(result.Message + " " + result.Stderr)
	if result.ExitCode != nil && *result.ExitCode == 6 {
		return adapter.Reject("ACCOUNT_TAKEN", "requester.posix", "%s cannot have an account here: %s", p.Name, why)
	}
	return adapter.ErrorBody{Code: adapter.CodeUnavailable, Retryable: true,
		Message: "the account of " + p.Name + " could not be created: " + why}
}

// tell creates the account on the other members that do not have it yet.
func (d *Desk) tell(ctx context.Context, call *adapter.Call, p Person, controller string) {
	var group errgroup.Group
	group.SetLimit(parallelMembers)
	for _, member := range call.Members {
		of := told{member.ID, p.UID}
		if member.ID == controller || !member.Node.IsReachable() || d.knows(of) {
			continue
		}
		group.Go(func() error {
			_, err := call.Do(ctx, member, "account-"+member.ID, p.task(), adapter.Within(taskTime))
			if err != nil {
				call.Log.Warn("account not created on a member; will be tried again", "member", member.ID, "error", err)
				return nil
			}
			d.note(of)
			return nil
		})
	}
	_ = group.Wait() // each has logged what it could not do
}

// Told reports whether a member has the person's account, as far as this process knows.
func (d *Desk) Told(member adapter.Member, p Person) bool { return d.knows(told{member.ID, p.UID}) }

func (d *Desk) knows(of told) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told[of]
}

func (d *Desk) note(of told) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.told) >= maxTold {
		clear(d.told)
	}
	d.told[of] = true
}
