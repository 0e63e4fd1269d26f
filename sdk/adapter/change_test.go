package adapter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAChangeIsHeldAgainstTheRestOfItsDispatch(t *testing.T) {
	t.Parallel()
	member := []Member{{ID: "mem_1"}}
	for name, c := range map[string]struct {
		dispatch Dispatch
		code     string
		path     string
	}{
		"a drain": {Dispatch{OperationID: "op_1", Kind: MemberDrain, Targets: []string{"mem_1"}}, "",
			""},
		"a drain of nobody": {Dispatch{OperationID: "op_1", Kind: MemberDrain}, "TARGET_MISSING", "targets"},
		"a plan of a drain": {Dispatch{Kind: MemberDrain}, "", ""},
		"an upgrade": {Dispatch{OperationID: "op_1", Kind: InstanceUpgrade,
			Instance: Instance{Version: "2"}, Change: json.RawMessage(`{"to": {"version": "2"}}`)}, "", ""},
		"an upgrade elsewhere": {Dispatch{OperationID: "op_1", Kind: InstanceUpgrade,
			Instance: Instance{Version: "1"}, Change: json.RawMessage(`{"to": {"version": "2"}}`)}, "VERSION_MISMATCH",
			"change.to.version"},
		"an upgrade that cannot be read": {Dispatch{OperationID: "op_1", Kind: InstanceRollback,
			Change: json.RawMessage(`[]`)}, "CHANGE_INVALID", "change"},
		"a replacement": {Dispatch{OperationID: "op_1", Kind: MemberReplace, Targets: []string{"mem_0"},
			Members: member, Change: json.RawMessage(`{"replacementId": "mem_1"}`)}, "", ""},
		"a replacement by a stranger": {Dispatch{OperationID: "op_1", Kind: MemberReplace, Targets: []string{"mem_0"},
			Members: member, Change: json.RawMessage(`{"replacementId": "mem_2"}`)}, "REPLACEMENT_UNKNOWN",
			"change.replacementId"},
		"a plan of a replacement": {Dispatch{Kind: MemberReplace}, "", ""},
	} {
		err := c.dispatch.CheckChange()
		if c.code == "" {
			require.NoError(t, err, name)
			continue
		}
		var refused ErrorBody
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, c.code, refused.Code, name)
		require.Equal(t, c.path, refused.Path, name)
	}
}
