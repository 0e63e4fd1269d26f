package ids

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

func TestNewIDsParseAndSortByTheirMinting(t *testing.T) {
	t.Parallel()
	var minted []ID
	for range 1000 {
		id := New(Instance)
		require.True(t, id.Valid(), id)
		require.Equal(t, Instance, id.Kind())
		minted = append(minted, id)
	}
	require.True(t, slices.IsSorted(minted))
	require.Len(t, slices.Compact(minted), 1000)
}

func TestFromIsPureAndKeepsByteOrder(t *testing.T) {
	t.Parallel()
	require.Equal(t, ID("ten_00000000000000000000000000"), From(Tenant, [16]byte{}))
	require.Equal(t, ID("ten_00000000000000000000000001"), From(Tenant, [16]byte{15: 1}))
	require.Equal(t, ID("ten_7zzzzzzzzzzzzzzzzzzzzzzzzz"), From(Tenant, [16]byte(bytes.Repeat([]byte{255}, 16))))
	require.Equal(t, ID("ten_01h5a2cbrv9sc00000000000g0"),
		From(Tenant, [16]byte{0x01, 0x89, 0x54, 0x26, 0x2f, 0x1b, 0x4e, 0x58, 14: 2}))
	for i := range 15 {
		var low, high [16]byte
		low[i+1], high[i] = 255, 1
		require.Less(t, From(Tenant, low), From(Tenant, high))
	}
}

func TestEveryKindHasAnUnambiguousPrefixOfAtMostThreeLetters(t *testing.T) {
	t.Parallel()
	require.Len(t, Kinds(), len(kindNames))
	for _, kind := range Kinds() {
		require.LessOrEqual(t, len(kind), 3)
		require.True(t, kind.Known())
		require.LessOrEqual(t, len(New(kind)), MaxLen)
		require.True(t, New(kind).Is(kind))
		require.NotEqual(t, "object", kind.Name())
	}
	require.Equal(t, "an instance", Instance.Article())
	require.Equal(t, "a user", User.Article())
	require.Equal(t, "object", Kind("zzz").Name())
	require.False(t, ID("").Is(""))
}

func TestTextThatIsNoIDOfTheKindIsRefused(t *testing.T) {
	t.Parallel()
	good := string(From(Instance, [16]byte{1}))
	for name, bad := range map[string]string{
		"empty": "", "no prefix": good[4:], "other kind": "mem" + good[3:], "unknown kind": "zzz" + good[3:],
		"short": good[:len(good)-1], "long": good + "0", "upper case": strings.ToUpper(good),
		"look-alike": good[:len(good)-1] + "l", "beyond 128 bits": "ins_8" + good[5:],
		"no underscore": strings.Replace(good, "_", "-", 1), "space": " " + good, "huge": strings.Repeat("x", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(Instance, bad)
			require.True(t, fault.Is(err, fault.InvalidArgument))
			require.ErrorContains(t, err, "an instance")
			require.Less(t, len(err.Error()), 200, "an error must not echo what it is given without bound")
			require.False(t, ID(bad).Is(Instance))
		})
	}
	id, err := Parse(Instance, good)
	require.NoError(t, err)
	require.Equal(t, good, id.String())
}

func TestGraphQLReadsIDsAndNothingElse(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	want := New(Member)
	want.MarshalGQL(&out)
	require.Equal(t, `"`+want.String()+`"`, out.String())
	var got ID
	require.NoError(t, got.UnmarshalGQL(want.String()))
	require.Equal(t, want, got)
	for _, bad := range []any{nil, 7, "7", "mem_", []string{want.String()}} {
		var none ID
		require.True(t, fault.Is(none.UnmarshalGQL(bad), fault.InvalidArgument), "%v", bad)
		require.Empty(t, none)
	}
}

func FuzzParseAny(f *testing.F) {
	f.Add(string(New(Operation)))
	f.Add("op_")
	f.Add("_\xff")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseAny(text)
		if err != nil {
			require.True(t, fault.Is(err, fault.InvalidArgument))
			require.Empty(t, id)
			return
		}
		require.Equal(t, text, id.String())
		require.True(t, id.Is(id.Kind()))
		require.LessOrEqual(t, len(text), MaxLen)
	})
}

func FuzzFromRoundTrips(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), []byte("0123456789abcdeg"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a) != 16 || len(b) != 16 {
			t.Skip("an id holds 16 bytes")
		}
		x, y := From(Event, [16]byte(a)), From(Event, [16]byte(b))
		require.True(t, x.Valid())
		require.Equal(t, bytes.Compare(a, b), strings.Compare(string(x), string(y)), "order and identity are kept")
	})
}

func TestAnIDTellsWhenItWasMinted(t *testing.T) {
	t.Parallel()
	before := time.Now().Truncate(time.Millisecond)
	at := New(Session).MintedAt()
	require.False(t, at.Before(before))
	require.WithinDuration(t, before, at, time.Minute)
	require.Equal(t, time.UnixMilli(1<<48-1).UTC(), From(Session, [16]byte{255, 255, 255, 255, 255, 255}).MintedAt())
	require.Zero(t, ID("ses_x").MintedAt())
}

func TestABoundSortsBeforeWhatIsMintedThenAndAfterWhatWasMintedBefore(t *testing.T) {
	t.Parallel()
	id := New(Operation)
	require.Less(t, Before(Operation, id.MintedAt()), id)
	require.Greater(t, Before(Operation, id.MintedAt().Add(time.Millisecond)), id)
	require.True(t, Before(Operation, time.Time{}).Valid())
}
