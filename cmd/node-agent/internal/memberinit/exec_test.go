package memberinit

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// Every descriptor that stays open is one less for the member's other commands, and a shim whose pipe stays open waits
// for what to run.
func TestACommandThatDoesNotStartLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	e := &execution{}
	require.NoError(t, e.open(wire.Exec{}))
	opened := append([]*os.File{e.spec, e.input}, e.child...)
	for _, one := range e.output {
		opened = append(opened, one.read)
	}
	e.close()
	for i, file := range opened {
		assert.ErrorIs(t, file.Close(), os.ErrClosed, "descriptor %d of %d", i, len(opened))
	}
}
