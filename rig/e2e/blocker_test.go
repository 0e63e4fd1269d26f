package e2e_test

import (
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// drainIsClearedInTwoClicks drains a worker with a job that would go on for long, and has a person read what the job
// prints, cancel it at the blocker, and type a command in a terminal, all in the console.
func (k *clusterUnderTest) drainIsClearedInTwoClicks(worker string) {
	k.t.Helper()
	person, err := client.New(shared.URL, client.Options{Token: tokenOf(k.t, k.ctx, shared.Demo.AdminID)})
	require.NoError(k.t, err)
	theirs := *k // the person whose browser follows and cancels the job
	theirs.c = person
	job := theirs.submit(
		"#!/bin/sh\n#SBATCH --constraint=pool=blue\nfor i in $(seq 600); do echo line $i; sleep 1; done\n")
	require.Equal(k.t, "w1", k.job(job, "RUNNING").NodeList)
	drained, err := gql.DrainMember(k.ctx, k.c, gql.DrainMemberInput{MemberId: worker, DeadlineSeconds: 120,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.waitsFor(drained.DrainMember.Operation.Id, job, worker)
	_, code, err := shared.LoginLink(k.ctx, shared.Demo.AdminID)
	require.NoError(k.t, err)
	seen := browses(k.t, k.ctx, "blocker", "e2e/blocker.mjs", "--base", shared.URL, "--login-code", code,
		"--instance", k.instance, "--work", "job "+job, "--member", worker)
	for _, event := range []string{"watched", "cleared", "typed"} {
		require.Contains(k.t, seen, event)
	}
	k.succeeds(drained.DrainMember.Operation)
	k.job(job, "CANCELLED")
	k.returns(worker)
}

// returns puts a drained worker back to work.
func (k *clusterUnderTest) returns(worker string) {
	k.t.Helper()
	back, err := gql.UncordonMember(k.ctx, k.c, gql.MemberInput{MemberId: worker, IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.succeeds(back.UncordonMember.Operation)
	require.Equal(k.t, gql.MemberStatusActive, k.workers()["w1"].Status)
}
