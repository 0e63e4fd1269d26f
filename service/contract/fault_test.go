package contract

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestAnAppThatIsDownMakesAnActionUnavailableAndNotRefused(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		code      fault.Code
		retryable bool
	}{adapter.CodeUnavailable: {fault.AdapterUnavailable, true}, "NO_SUCH_JOB": {fault.AdapterRejected, false}} {
		got := fault.From(faultOf(&adapterclient.Error{Kind: adapterclient.Rejected, Status: 422,
			Body: adapter.ErrorBody{Code: code, Message: "slurmctld does not answer", Path: "input.jobId"}}))
		require.Equal(t, want.code, got.Code)
		require.Equal(t, want.retryable, fault.Lookup(got.Code).Retryable)
	}
}
