package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestAReadingThatMayBeOlderThanWhatWasSentIsMadeAgain(t *testing.T) {
	t.Parallel()
	at := func(percent int) *operation.View { return &operation.View{Operation: &db.Operation{Percent: percent}} }
	w := &watchedOperation{again: make(chan struct{}, 1)}
	newest, out, since := make(chan reading), make(chan *operation.View), time.Now()
	go w.follow(t.Context(), at(5), since, newest, out)
	require.Equal(t, 5, (<-out).Percent)

	newest <- reading{view: at(0), begun: since.Add(-time.Millisecond)}
	<-w.again
	newest <- reading{view: at(40), begun: since.Add(time.Millisecond)}
	require.Equal(t, 40, (<-out).Percent, "the older reading is not passed on")
}
