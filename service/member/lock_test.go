package member_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/service/member"
)

// A database that is away while the instance is locked is an error like others: the caller asks again under its key.
func TestAChangeThatDoesNotGetItsInstanceFailsAndIsTakenWhenItIsAskedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	holder, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = holder.Rollback(context.Background()) })
	_, err = holder.Exec(t.Context(), `SELECT FROM instance WHERE id = $1 FOR UPDATE`, b.made.ID)
	require.NoError(t, err)
	before := b.written()
	label := member.LabelInput{Input: b.on(0, "k"), Labels: json.RawMessage(`{"rack": "r-7"}`)}
	short, cancel := context.WithTimeout(b.admin, 200*time.Millisecond)
	defer cancel()
	_, err = b.service.Label(short, label)
	require.Error(t, err)
	require.Equal(t, before, b.written())
	require.NoError(t, holder.Rollback(t.Context()))
	_, err = b.service.Label(b.admin, label)
	require.NoError(t, err)
}
