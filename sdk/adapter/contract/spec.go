package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

// SpecHash is the identity of a dispatch: the SHA-256, in hex, of what never changes between
// two dispatches of one operation. Attempt, deadline, force, token and trace are left out, and so
// is what moves while the operation runs: a member's status, cordon, labels and network, and
// whether its node can be reached.
func (d Dispatch) SpecHash() (string, error) {
	members := make([]Member, len(d.Members))
	for i, member := range d.Members {
		member.Status, member.Cordoned, member.Labels, member.Node.Reachable = "", false, nil, nil
		member.Address, member.Ranges, member.Volumes = "", nil, nil
		members[i] = member
	}
	instance := d.Instance
	instance.Config = wire.Canonical(instance.Config)
	instance.OperatingMode, instance.ControlPlaneScope, instance.RuntimeProfile, instance.Artifacts = "", "", nil, nil
	spec, err := json.Marshal([]any{d.OperationID, d.Kind, instance, members, wire.NonNil(d.Targets),
		wire.Canonical(d.Change)})
	if err != nil {
		return "", fmt.Errorf("hash dispatch: %w", err)
	}
	sum := sha256.Sum256(spec)
	return hex.EncodeToString(sum[:]), nil
}

// Validate checks the shape of a dispatch: ids, kind, attempt, bounds. The error is an
// [ErrorBody] with the path of the field at fault.
func (d Dispatch) Validate() error {
	switch {
	case !wire.IDPattern.MatchString(d.OperationID):
		return Invalid("operationId", "is not an id")
	case !d.Kind.Valid():
		return Invalid("kind", "%q is not an operation kind", wire.Clip(string(d.Kind), 64))
	case d.Attempt < 1:
		return Invalid("attempt", "must be at least 1")
	case d.Deadline.IsZero():
		return Invalid("deadline", "is missing")
	case len(d.Targets) > MaxMembers:
		return Invalid("targets", "must not be more than %d", MaxMembers)
	}
	if err := d.Platform.Validate(); err != nil {
		return err
	}
	if err := validateInstance(d.Instance, d.Members); err != nil {
		return err
	}
	return validateTargets(d.Members, d.Targets)
}

func validateTargets(members []Member, targets []string) error {
	known := make(map[string]bool, len(members))
	for _, member := range members {
		known[member.ID] = true
	}
	for i, id := range targets {
		if !known[id] {
			return Invalid(fmt.Sprintf("targets[%d]", i), "is not one of members")
		}
	}
	return nil
}

func validateInstance(instance Instance, members []Member) error {
	switch {
	case !wire.IDPattern.MatchString(instance.ID):
		return Invalid("instance.id", "is not an id")
	case instance.App == "":
		return Invalid("instance.app", "is missing")
	case len(members) > MaxMembers:
		return Invalid("members", "must not be more than %d", MaxMembers)
	}
	seen := make(map[string]bool, len(members))
	for i, member := range members {
		if !wire.IDPattern.MatchString(member.ID) || seen[member.ID] {
			return Invalid(fmt.Sprintf("members[%d].id", i), "is not an id, or is used twice")
		}
		seen[member.ID] = true
	}
	return nil
}

// Validate checks that the address and the token of the public API are given.
func (p Platform) Validate() error {
	switch {
	case p.GraphQLURL == "":
		return Invalid("platform.graphqlUrl", "is missing")
	case p.Token == "":
		return Invalid("platform.token", "is missing")
	}
	return nil
}

// Validate checks the shape of an action on the instance of the request's path. The error is an [ErrorBody] with the
// path of the field at fault.
func (a ActionRequest) Validate(instanceID string) error {
	switch {
	case a.Instance.ID != instanceID:
		return Invalid("instance.id", "is not the id of the path")
	case a.IdempotencyKey == "" || len(a.IdempotencyKey) > MaxKeyLength:
		return Invalid("idempotencyKey", "must be 1 to %d bytes", MaxKeyLength)
	}
	if err := a.Platform.Validate(); err != nil {
		return err
	}
	return validateInstance(a.Instance, a.Members)
}
