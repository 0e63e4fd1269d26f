package event

import (
	"testing"

	"github.com/gpuaas/app-platform/domain/fault"
)

// FuzzCursors: a cursor that is read is a position that exists, and is written the same again but for
// leading zeros and signs; any other is refused by its code.
func FuzzCursors(f *testing.F) {
	feeds := &Feeds{}
	for _, seed := range []string{"", "s0", "s17", "s-1", "s999999999999", "p1z.1.2", "pother.1.2", "p1z.-1.2",
		"p1z.1.99999999999999999999", "p..", "p1z.+1.2", "s17.1z", "s1.0", "s1.-1", "p1y2p0ij32e8e7.1.2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if seq, err := ParseInstanceCursor(cursor); err == nil {
			if again, err := ParseInstanceCursor(InstanceCursor(seq)); seq.Order < 0 || err != nil || again != seq {
				t.Fatalf("%q became %+v", cursor, seq)
			}
		} else if !fault.Is(err, fault.CursorInvalid) {
			t.Fatal(err)
		}
		position, err := feeds.Parse(cursor)
		if err != nil {
			if !fault.Is(err, fault.CursorInvalid) && !fault.Is(err, fault.CursorExpired) {
				t.Fatal(err)
			}
			return
		}
		if position.system != 0 {
			return // it is written as one of the first generation
		}
		if again, err := feeds.Parse(feeds.Cursor(position)); position.XID < 0 || position.Order < 0 || err != nil ||
			again != position {
			t.Fatalf("%q became %+v", cursor, position)
		}
	})
}
