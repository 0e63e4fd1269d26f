package live_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

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
			SELECT number + 1, system_identifier, timeline, database FROM platform.generation_log ORDER BY number DESC LIMIT 1`)
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
