package live_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
)

func TestDocumentsThatMeanTheSameShareAGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := b.As(b.viewer)
	literal := fmt.Sprintf(`subscription Mine { instanceTimeline(instanceId: %q, after: "s0") { ...A ...B } }
		fragment B on Event { message } fragment A on Event { seq, cursor }`, b.made.ID)
	swapped := fmt.Sprintf(`subscription { instanceTimeline(instanceId: %q) { ...A ...B } }
		# who watches
		fragment A on Event { seq cursor }   fragment B on Event { message }`, b.made.ID)
	first := b.watching(ctx, timeline, "")
	for n := range 5 {
		b.watching(ctx, strings.ReplaceAll(timeline, " {", strings.Repeat(" ", n+2)+"{ # "+fmt.Sprint(n)+"\n"), "")
	}
	require.Equal(t, 1, b.server.Groups(), "white space and comments make no group")
	b.watching(ctx, literal, "")
	b.watching(ctx, swapped, "")
	require.Equal(t, 2, b.server.Groups(), "neither do names, arguments and the order of fragments")
	b.append("one")
	b.until(func() bool { return len(first.got()) == 1 })
}

func TestOneSubjectCannotFillTheGroups(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SubjectGroups = 2
	b.server.Subject = func(ctx context.Context) string {
		credential, _ := tx.CredentialFrom(ctx)
		return credential.ID()
	}
	ctx := b.As(b.viewer)
	other := strings.Replace(timeline, "seq ", "", 1)
	b.watching(ctx, timeline, "")
	b.watching(ctx, timeline, "s0") // the same group again
	stop, err := b.subscribe(ctx, activity, "", newSink())
	require.NoError(t, err)
	_, err = b.subscribe(ctx, other, "", newSink())
	require.True(t, fault.Is(err, fault.LimitExceeded), "%v", err)
	require.Equal(t, 2, b.server.Groups(), "nothing is left of what was refused")
	b.watching(b.admin, other, "") // somebody else may
	b.watching(ctx, timeline, "")
	stop()
	b.watching(ctx, other, "") // one was ended
}

func TestWhoWatchesAFutureThatWasLostIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := b.As(b.viewer)
	one, all := b.watching(ctx, timeline, ""), b.watching(ctx, activity, "")
	b.append("kept", "lost")
	b.until(func() bool { return len(one.got()) == 2 && len(all.got()) == 2 })
	lost, lostOfAll := one.got()[1].Cursor, all.got()[1].Cursor
	// as a replica is that was promoted before it had the last event
	b.SQL(`SET session_replication_role = replica; DELETE FROM app_instance_event WHERE message = 'lost';
		UPDATE instance SET revision = 1; SET session_replication_role = DEFAULT;
		INSERT INTO platform.generation_log (number, system_identifier, timeline, database)
			SELECT number + 1, system_identifier, timeline, database FROM platform.generation_log ORDER BY number DESC
			LIMIT 1`)
	b.append("instead") // with the number of the lost one
	for _, each := range []*sink{one, all} {
		require.True(t, fault.Is(each.ended(t, patience), fault.CursorExpired), "%v", each.err)
		require.Len(t, each.got(), 2)
	}
	for document, cursor := range map[string]string{timeline: lost, activity: lostOfAll} {
		_, err := b.subscribe(ctx, document, cursor, newSink())
		require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
	}
	again := b.watching(ctx, timeline, "")
	b.until(func() bool { return len(again.got()) == 2 && again.got()[1].Message == "instead" })
	kept := b.watching(ctx, timeline, again.got()[0].Cursor)
	b.until(func() bool { return len(kept.got()) == 1 })
}
