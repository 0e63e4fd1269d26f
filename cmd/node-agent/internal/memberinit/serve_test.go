package memberinit

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/output"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// A command that prints a line and then works in silence is the common one.
func TestTheResultComesHoweverLongACommandWasSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		going := &run{key: "tsk_silent", fence: 1, stdout: output.NewCapture(), stderr: output.NewCapture(),
			done: make(chan struct{})}
		s := &server{runs: &runs{byKey: map[string]*run{going.key: going}}}
		agent, member := net.Pipe()
		go func() {
			defer member.Close()
			s.handleRun(member, wire.Run{Key: going.key, Fence: going.fence})
		}()

		_, err := going.stdout.Write([]byte("begun"))
		require.NoError(t, err)
		var answer wire.Response
		require.NoError(t, wire.Read(agent, &answer))
		require.Equal(t, &wire.Output{Stream: "stdout", Data: []byte("begun")}, answer.Output)

		<-time.After(2 * requestPatience) // the bubble's time
		going.result = wire.RunResult{Key: going.key, ExitCode: 3}
		going.stdout.Close()
		going.stderr.Close()
		close(going.done)
		answer = wire.Response{}
		require.NoError(t, wire.Read(agent, &answer))
		require.NotNil(t, answer.Result)
		assert.Equal(t, 3, answer.Result.ExitCode)
		require.NoError(t, agent.Close())
	})
}
