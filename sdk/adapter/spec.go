package adapter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
)

// idPattern is what an id of the contract looks like. It is also what makes an id safe as a file name.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// SpecHash is the identity of a dispatch: the SHA-256, in hex, of what never changes between
// two dispatches of one operation. Attempt, deadline, force, token and trace are left out, and so
// is what moves while the operation runs: a member's status, cordon and labels, and whether its
// node can be reached.
func (d Dispatch) SpecHash() (string, error) {
	members := make([]Member, len(d.Members))
	for i, member := range d.Members {
		member.Status, member.Cordoned, member.Labels, member.Node.Reachable = "", false, nil, nil
		members[i] = member
	}
	instance := d.Instance
	instance.Config = canonical(instance.Config)
	instance.OperatingMode, instance.ControlPlaneScope, instance.RuntimeProfile, instance.Artifacts = "", "", nil, nil
	spec, err := json.Marshal([]any{d.OperationID, d.Kind, instance, members, nonNil(d.Targets), canonical(d.Change)})
	if err != nil {
		return "", fmt.Errorf("hash dispatch: %w", err)
	}
	sum := sha256.Sum256(spec)
	return hex.EncodeToString(sum[:]), nil
}

// canonical rewrites JSON with sorted keys and no white space, so that a platform which stores
// it as jsonb still sends the same specification. What is not JSON stays as it is.
func canonical(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return json.RawMessage("null")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	out, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return out
}

func isNull(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null"))
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Validate checks the shape of a dispatch: ids, kind, attempt, bounds. The error is an
// [ErrorBody] with the path of the field at fault.
func (d Dispatch) Validate() error {
	switch {
	case !idPattern.MatchString(d.OperationID):
		return invalid("operationId", "is not an id")
	case !d.Kind.Valid():
		return invalid("kind", "%q is not an operation kind", clip(string(d.Kind), 64))
	case d.Attempt < 1:
		return invalid("attempt", "must be at least 1")
	case d.Deadline.IsZero():
		return invalid("deadline", "is missing")
	case len(d.Targets) > MaxMembers:
		return invalid("targets", "must not be more than %d", MaxMembers)
	}
	if err := d.Platform.validate(); err != nil {
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
			return invalid(fmt.Sprintf("targets[%d]", i), "is not one of members")
		}
	}
	return nil
}

func validateInstance(instance Instance, members []Member) error {
	switch {
	case !idPattern.MatchString(instance.ID):
		return invalid("instance.id", "is not an id")
	case instance.App == "":
		return invalid("instance.app", "is missing")
	case len(members) > MaxMembers:
		return invalid("members", "must not be more than %d", MaxMembers)
	}
	seen := make(map[string]bool, len(members))
	for i, member := range members {
		if !idPattern.MatchString(member.ID) || seen[member.ID] {
			return invalid(fmt.Sprintf("members[%d].id", i), "is not an id, or not the first with it")
		}
		seen[member.ID] = true
	}
	return nil
}

func (p Platform) validate() error {
	switch {
	case p.GraphQLURL == "":
		return invalid("platform.graphqlUrl", "is missing")
	case p.Token == "":
		return invalid("platform.token", "is missing")
	}
	return nil
}
