package ids_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

func TestABoundBeforeTimeBeganIsTheLowestID(t *testing.T) {
	t.Parallel()
	lowest := ids.From(ids.Instance, [16]byte{})
	require.Equal(t, lowest, ids.Before(ids.Instance, time.UnixMilli(0)))
	require.Equal(t, lowest, ids.Before(ids.Instance, time.UnixMilli(-1)))
	require.NotEqual(t, lowest, ids.Before(ids.Instance, time.UnixMilli(1)))
}

func TestAnIDNeedsAKnownKindThoughItsBodyIsRight(t *testing.T) {
	t.Parallel()
	body := ids.New(ids.Instance).Suffix()
	for _, text := range []string{"zzz_" + body, "_" + body, body, "ins" + body, "ins-" + body} {
		require.False(t, ids.ID(text).Valid(), text)
	}
	require.True(t, ids.ID("ins_"+body).Valid())
}

func TestARefusalRepeatsNoMoreThanAnID(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("x", ids.MaxLen)
	_, err := ids.ParseAny(most)
	require.ErrorContains(t, err, `"`+most+`" is not an id`)
	_, err = ids.ParseAny(most + "y")
	require.ErrorContains(t, err, `"`+most+`…" is not an id`)
	var id ids.ID
	require.ErrorContains(t, id.UnmarshalGQL(7), "an id must be a string")
	require.NotContains(t, id.UnmarshalGQL("7").Error(), "an id must be a string")
}
