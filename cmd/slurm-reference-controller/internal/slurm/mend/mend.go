// Package mend replaces workers that Slurm has given up: by the account that the instance's project chose for
// its adapter, and by public verbs alone.
//
// slurmctld calls a node down when its slurmd has been silent for SlurmdTimeout. The member's own process may
// live on, and then the platform has nothing to repair: that a worker takes no jobs any more is Slurm's
// knowledge, which this adapter reads whenever the platform asks it how the cluster is. A project that wants it
// mended chooses an account for the instance with the keys scheduler.node.read, scheduler.member.replace and
// operation.read; without one it is left to people.
package mend

import (
	"context"
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/automation"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// pause is how long a worker is left alone after it was looked at, whatever came of it.
	pause = 10 * time.Minute
	// callTime bounds the calls for one worker.
	callTime = time.Minute
	// deadline bounds a replacement, in seconds.
	deadline = 600
	// maxWaiting bounds the workers that wait for their turn: one beyond is found again by the next look.
	maxWaiting = 64
	// maxKnown bounds the workers whose last time is known.
	maxKnown = 4_096
)

// Lost is a worker that Slurm has given up.
type Lost struct {
	InstanceID, MemberID string
	// Says is what Slurm says of it.
	Says string
}

// Mender replaces lost workers, one after the other.
type Mender struct {
	waiting chan Lost
	known   map[string]time.Time // when a member was looked at last
}

// New returns a mender that has nothing to do yet.
func New() *Mender {
	return &Mender{waiting: make(chan Lost, maxWaiting), known: make(map[string]time.Time)}
}

// Tell notes a lost worker. It never waits.
func (m *Mender) Tell(lost Lost) {
	select {
	case m.waiting <- lost:
	default:
	}
}

// Run replaces workers until ctx ends.
func (m *Mender) Run(ctx context.Context, account *automation.Account, log *slog.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case lost := <-m.waiting:
			if !m.due(lost) {
				continue
			}
			log := log.With("instance_id", lost.InstanceID, "member_id", lost.MemberID, "slurm", lost.Says)
			operation, err := replace(ctx, account, lost)
			switch {
			case automation.Unchosen(err):
				log.Info("a worker is down, and the project has no account that may replace it: choose one")
			case err != nil:
				account.Forget(lost.InstanceID)
				log.Warn("a worker is down, and could not be replaced", "error", err.Error())
			case operation != "":
				log.Info("a worker that Slurm reports as down is replaced", "operation_id", operation)
			}
		}
	}
}

// due reports whether it is the worker's turn, and notes that it was.
func (m *Mender) due(lost Lost) bool {
	now := time.Now()
	if last, known := m.known[lost.MemberID]; known && now.Sub(last) < pause {
		return false
	}
	if len(m.known) >= maxKnown {
		clear(m.known)
	}
	m.known[lost.MemberID] = now
	return true
}

// replace requests the replacement, once for a member across restarts, and returns the operation. It requests none for
// a member that the platform itself does not call active: repair and people have that in hand. The reason counts with
// the idempotency key: with another text the platform refuses the repeat of an earlier build's request.
func replace(ctx context.Context, account *automation.Account, lost Lost) (operation string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c, err := account.For(lost.InstanceID)
	if err != nil {
		return "", err
	}
	found, err := gql.GetMember(ctx, c, lost.MemberID)
	if err != nil || found.Member.Status != gql.MemberStatusActive {
		return "", err
	}
	replaced, err := gql.ReplaceMember(ctx, c, gql.ReplaceMemberInput{
		MemberId: lost.MemberID, DeadlineSeconds: deadline, Reason: "Slurm has given the worker up: " + lost.Says,
		IdempotencyKey: "slurm-lost-" + lost.MemberID})
	if err != nil {
		return "", err
	}
	return replaced.ReplaceMember.Operation.Id, nil
}
