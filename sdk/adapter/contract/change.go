package contract

import (
	"encoding/json"
	"slices"
	"strings"
)

// CheckChange holds a dispatch's targets and change against the rest of it, for an app's Check: a member's operation
// has a target, a change of version leads to the instance's version, and a replacement is one of the members. Of a
// plan, which has no operation yet, nor who is still to come, less is asked. It refuses with TARGET_MISSING,
// VERSION_MISMATCH, REPLACEMENT_UNKNOWN or CHANGE_INVALID.
func (d Dispatch) CheckChange() error {
	planned := d.OperationID == ""
	if strings.HasPrefix(string(d.Kind), "member") && len(d.Targets) == 0 && !planned {
		return Reject("TARGET_MISSING", "targets", "%s needs a member", d.Kind)
	}
	switch d.Kind {
	case InstanceUpgrade, InstanceRollback:
		var to VersionChange
		if err := d.readChange(&to); err != nil {
			return err
		}
		if to.To.Version != d.Instance.Version {
			return Reject("VERSION_MISMATCH", "change.to.version", "is %q, but the instance has version %q",
				to.To.Version, d.Instance.Version)
		}
	case MemberReplace:
		var by ReplaceChange
		if err := d.readChange(&by); err != nil {
			return err
		}
		if !planned && !slices.ContainsFunc(d.Members, func(m Member) bool { return m.ID == by.ReplacementID }) {
			return Reject("REPLACEMENT_UNKNOWN", "change.replacementId", "is not one of members")
		}
	}
	return nil
}

// readChange reads the change; one that is left out is empty.
func (d Dispatch) readChange(into any) error {
	if len(d.Change) == 0 {
		return nil
	}
	if err := json.Unmarshal(d.Change, into); err != nil {
		return Reject("CHANGE_INVALID", "change", "cannot be read: %v", err)
	}
	return nil
}
