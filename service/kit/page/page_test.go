package page_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestACursorIsReadBackByItsOwnListAlone(t *testing.T) {
	t.Parallel()
	cursor := page.Cursor("things", "name \"x\"", 7)
	var name string
	var n int
	require.NoError(t, page.Args{After: cursor}.Decode("things", &name, &n))
	require.Equal(t, []any{"name \"x\"", 7}, []any{name, n})
	for list, values := range map[string][]any{"others": {&name, &n}, "things": {&name}, "": {&name, &n}} {
		err := page.Args{After: cursor}.Decode(list, values...)
		require.True(t, fault.Is(err, fault.CursorInvalid), "%s: %v", list, err)
		require.Equal(t, "after", fault.From(err).Reasons[0].Path)
	}
	name = "kept"
	require.NoError(t, page.Args{}.Decode("things", &name, &n))
	require.Equal(t, "kept", name)
}

func TestAPageHoldsWhatWasAskedForAndSaysWhetherMoreFollows(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return "c" + s }
	cut := page.Cut(page.Args{First: 2}, []string{"a", "b", "c"}, text)
	require.Equal(t, &page.Page[string]{Rows: []string{"a", "b"}, Cursors: []string{"ca", "cb"}, HasNext: true}, cut)
	cut = page.Cut(page.Args{First: 2, After: "x"}, []string{"c"}, text)
	require.Equal(t, &page.Page[string]{Rows: []string{"c"}, Cursors: []string{"cc"}, HasPrev: true}, cut)
	require.Empty(t, page.Cut(page.Args{First: 2}, nil, text).Rows)
}

func TestTheFirstRowsAskedForHaveBounds(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{1: true, 5: true, 6: false, 0: false, -1: false} {
		args, err := page.Of(&n, nil, 3, 5)
		require.Equal(t, ok, err == nil, n)
		if ok {
			require.Equal(t, page.Args{First: n}, args)
		} else {
			require.True(t, fault.Is(err, fault.InvalidArgument))
			require.Equal(t, "first", fault.From(err).Reasons[0].Path)
		}
	}
	after := "x"
	args, err := page.Of(nil, &after, 3, 5)
	require.NoError(t, err)
	require.Equal(t, page.Args{First: 3, After: "x"}, args)
}

func FuzzDecode(f *testing.F) {
	f.Add(page.Cursor("things", "x", 1))
	for _, text := range []string{`["things","x",null]`, `["things",{},1]`, `[`, `["things","x",1e99]`,
		`{"0":"things"}`} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		var name string
		var n int
		err := page.Args{First: 1, After: cursor}.Decode("things", &name, &n)
		if err != nil {
			require.True(t, fault.Is(err, fault.CursorInvalid))
			return
		}
		if cursor != "" { // what is taken says what it was made from
			var again string
			var m int
			require.NoError(t, page.Args{After: page.Cursor("things", name, n)}.Decode("things", &again, &m))
			require.Equal(t, []any{name, n}, []any{again, m})
		}
	})
}
