package adapter

import (
	"context"
	"time"
)

// teardownTime is how long the node may take to stop and delete one member.
const teardownTime = 5 * time.Minute

// Teardown deletes the sandboxes of members, several at once, and reports each as removed once its
// node has said that nothing is left. What the nodes said is kept as the evidence "residue".
func (r *Run) Teardown(ctx context.Context, members []Member) error {
	found := make([]Residue, len(members))
	indexes := make(map[string]int, len(members))
	for i, member := range members {
		indexes[member.ID] = i
	}
	err := r.Each(ctx, members, func(ctx context.Context, member Member) error {
		residue, err := r.teardownOne(ctx, member)
		found[indexes[member.ID]] = residue
		return err
	})
	if err != nil {
		return err
	}
	left := make(map[string]int, len(members))
	for i, member := range members {
		left[member.ID] = len(found[i].Processes) + len(found[i].Mounts) + found[i].Files
	}
	return r.Evidence("residue", left)
}

func (r *Run) teardownOne(ctx context.Context, member Member) (Residue, error) {
	result, err := r.Do(ctx, member, "teardown", Teardown{}, Within(teardownTime))
	if err != nil {
		return Residue{}, err
	}
	residue, ok := result.Residue()
	if ok && !residue.Empty() {
		return residue, Fail("RESIDUE_LEFT", OwnerNode, true, "member %s left %d processes, %d mounts and %d files on its node",
			member.ID, len(residue.Processes), len(residue.Mounts), residue.Files)
	}
	return residue, r.Member(member.ID, MemberRemoved, HealthUnknown, nil)
}
