package cli_test

import (
	"maps"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// addGapFixtures gives the stand-in a version that lacks one condition, and the gap that was filed from it.
func addGapFixtures(s *clienttest.Server) {
	actor := object{"kind": "SERVICE_ACCOUNT", "id": "sa_1", "name": "ci"}
	evidence := func(id, url any, what, state string) object {
		return object{"id": id, "url": url, "what": what, "state": state, "at": at}
	}
	checks := []object{
		{"condition": "CONTRACTS", "verdict": "PASSED", "message": "12 recorded calls", "remedy": "", "at": at,
			"gapId": nil, "evidence": []object{evidence("ins_1", "", "instance", "")}},
		{"condition": "SUPPORT_RUNBOOK", "verdict": "FAILED", "message": "none begins from the correlation id",
			"remedy": "name the steps of triage", "at": nil, "gapId": "gap_1",
			"evidence": []object{evidence(nil, "https://runbooks.example/stuck", "Stuck", "without triage")}},
	}
	record := object{"id": "onb_1", "manifestId": "man_1", "passed": false, "checks": checks, "checkedAt": at,
		"checkedBy": actor, "reason": "release"}
	s.Handle("appOnboarding", func(call clienttest.Call) (any, error) {
		return object{"appSlug": call.Args["appSlug"], "manifestId": "man_1", "version": "1.2.0", "stage": "CANARY",
			"required": true, "passed": false, "checks": checks, "checkedAt": at, "records": []object{record}}, nil
	})
	s.Handle("checkAppOnboarding", answer(record))
	s.Handle("gaps", answer(page(gapIn("OPEN", nil))))
	s.Handle("raiseGap", answer(gapIn("OPEN", nil)))
	s.Handle("decideGap", answer(gapIn("ACCEPTED", object{"decidedBy": actor, "decidedAt": at, "decision": "for all"})))
	s.Handle("closeGap", answer(gapIn("CLOSED", object{"closedBy": actor, "closedAt": at, "release": "0.42.0",
		"releaseManifestId": "man_2", "closeReason": "it has it"})))
}

// gapIn is an entry of the gap log in a state, with what else is different.
func gapIn(state string, changes object) object {
	out := object{"__typename": "Gap", "id": "gap_1", "kind": "MISSING_EVENT", "state": state, "appSlug": "hello",
		"manifestId": "man_1", "version": "1.2.0", "condition": "SUPPORT_RUNBOOK", "title": "No triage",
		"description": "Support is lost.", "evidence": []string{"https://runbooks.example/stuck"}, "instanceId": nil,
		"raisedBy": object{"kind": "SERVICE_ACCOUNT", "id": "sa_1", "name": "ci"}, "createdAt": at, "decidedBy": nil,
		"decidedAt": nil, "decision": "", "closedBy": nil, "closedAt": nil, "release": "", "releaseManifestId": nil,
		"closeReason": ""}
	maps.Copy(out, changes)
	return out
}
