package agent

import (
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/watch"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func findingsInput(lost []watch.Finding) (input []gql.MemberFindingInput) {
	for _, one := range lost {
		finding := gql.MemberFindingInput{MemberId: one.MemberID, Failure: gql.MemberFailure(one.Failure)}
		if one.Message != "" {
			finding.Message = &one.Message
		}
		input = append(input, finding)
	}
	return input
}

func restartsInput(restarts []watch.Restarts) (input []gql.ProcessRestartsInput) {
	for _, one := range restarts {
		input = append(input, gql.ProcessRestartsInput{MemberId: one.MemberID, Since: one.Since, Process: one.Process,
			Restarts: one.Restarts})
	}
	return input
}
