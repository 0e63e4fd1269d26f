package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// limitsDocument changes an account and answers what it is bound to.
const limitsDocument = `mutation($input: UpdateServiceAccountInput!) { updateServiceAccount(input: $input) {
	permissionKeys limits { objectIds maxRisk operationsPerHour } } }`

const planLimitsDocument = `query($input: UpdateServiceAccountInput!) { planServiceAccountUpdate(input: $input) {
	permissionKeys limits { objectIds maxRisk operationsPerHour } widens narrows } }`

// An admin who raises one limit of an account leaves the others as they are. A limit to lift is named; the plan shows
// what widens, and the audit records it.
func TestOneLimitIsChangedAndTheOthersStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Kit.Tenant()
	project := b.Kit.Project(tenant)
	admin := b.Session(b.Kit.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	account, _ := b.ServiceAccount(project, authz.AppsInstanceRead, authz.AppsQueueSubmit)
	instance := ids.New(ids.Instance)
	b.SQL(`UPDATE service_account SET limits = jsonb_build_object('objectIds', jsonb_build_array($1::text), 'maxRisk',
		'READ', 'operationsPerHour', 2)`, instance)
	change := func(document string, input object) answer {
		input["serviceAccountId"] = account.ID
		return b.post(admin, document, arguments{"input": input})
	}

	raise := object{"limits": object{"maxRisk": "WRITE"}}
	plan := change(planLimitsDocument, raise)
	require.Empty(t, plan.Errors)
	require.JSONEq(t, `{"planServiceAccountUpdate":{"permissionKeys":["apps.instance.read","apps.queue.submit"],
		"limits":{"objectIds":["`+
		string(instance)+`"],"maxRisk":"WRITE","operationsPerHour":2},"widens":["limits.maxRisk"],"narrows":[]}}`,
		plan.Data)
	require.Equal(t, 1, b.Count("service_account", "limits->>'maxRisk' = 'READ'"), "a plan writes nothing")
	raised := change(limitsDocument, raise)
	require.JSONEq(t, `{"updateServiceAccount":{"permissionKeys":["apps.instance.read","apps.queue.submit"],
		"limits":{"objectIds":["`+string(instance)+`"],"maxRisk":"WRITE","operationsPerHour":2}}}`, raised.Data)
	require.Equal(t, 1, b.Count("audit_entry",
		`action = 'updateServiceAccount' AND after->'widens' = '["limits.maxRisk"]'`))
	second := ids.New(ids.Instance)
	faster := change(limitsDocument, object{"limits": object{"operationsPerHour": 3}})
	require.Contains(t, faster.Data,
		`"limits":{"objectIds":["`+string(instance)+`"],"maxRisk":"WRITE","operationsPerHour":3}`)
	farther := change(limitsDocument, object{"limits": object{"objectIds": []ids.ID{instance, second}}})
	require.Contains(t, farther.Data, `"`+string(second)+`"],"maxRisk":"WRITE","operationsPerHour":3}`)

	lifted := change(limitsDocument, object{"liftLimits": []string{"OPERATIONS_PER_HOUR"},
		"limits": object{"maxRisk": "READ"}})
	require.Contains(t, lifted.Data, `"maxRisk":"READ","operationsPerHour":null`)
	require.Contains(t, lifted.Data, string(instance))
	require.Equal(t, 1, b.Count("audit_entry", `action = 'updateServiceAccount' AND after->'widens' = '["limits.operationsPerHour"]'
		AND after->'narrows' = '["limits.maxRisk"]'`))

	before := b.fingerprint()
	for path, input := range map[string]object{
		"input.limits":       {"limits": object{}},
		"input.liftLimits.0": {"liftLimits": []string{"MAX_RISK"}, "limits": object{"maxRisk": "WRITE"}},
		"input.liftLimits.1": {"liftLimits": []string{"MAX_RISK", "MAX_RISK"}},
		"input":              {"reason": "nothing"},
	} {
		refused := change(limitsDocument, input)
		require.Equal(t, string(fault.InvalidArgument), refused.code(), path)
		require.Contains(t, refused.paths(), path)
	}
	require.Equal(t, before, b.fingerprint())
}

// No one who lacks a key of the account may loosen its limit: it would get more of each key. It may be tightened.
func TestALimitIsWidenedByWhoeverHoldsWhatTheAccountMay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Kit.Tenant()
	project := b.Kit.Project(tenant)
	admin := b.Session(b.Kit.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	account, _ := b.ServiceAccount(project, authz.ManifestPublish)
	b.SQL(`UPDATE service_account SET limits = '{"maxRisk": "WRITE"}'`)
	change := func(input object) answer {
		input["serviceAccountId"] = account.ID
		return b.post(admin, limitsDocument, arguments{"input": input})
	}
	require.Equal(t, string(fault.Forbidden), change(object{"liftLimits": []string{"MAX_RISK"}}).code())
	require.Equal(t, 1, b.Count("service_account", `limits = '{"maxRisk": "WRITE"}'`))
	require.Empty(t, change(object{"limits": object{"maxRisk": "READ"}}).Errors)
}

// A list is of the whole project: an account that is limited to objects gets an error that names its own limit, and not
// a key that it has.
func TestListsByALimitedAccountNameItsLimit(t *testing.T) {
	t.Parallel()
	b, schema := newBench(t), sdl(t)
	mine := b.build()
	b.SQL(`UPDATE service_account SET limits = jsonb_build_object('objectIds', jsonb_build_array($1::text))
		WHERE id = $2`,
		mine.Instance, mine.Account)
	lists := []string{
		"query instances", "query allocations", "query operations", "query orphans", "query entitlements",
		"query auditEntries",
		"query controlPlaneShares", "query webhooks", "query serviceAccounts", "query launchOptions",
		"mutation launchInstance", "subscription projectActivity",
	}
	tried := 0
	for _, r := range roots(schema) {
		for _, list := range lists {
			if r.String() != list {
				continue
			}
			tried++
			with := recipes[list](mine, mine)[0]
			refused := b.call(schema, r, mine.robot, with)
			require.Equal(t, string(fault.Forbidden), refused.code(), "%s: %+v", list, refused)
			require.Equal(t, string(fault.AccountLimit), refused.Errors[0].Extensions.Reasons[0].Code, "%s: %+v",
				list, refused)
		}
	}
	require.Len(t, lists, tried)
}

// The holder of a key that was good once learns that it has expired; a revoked key is unknown.
func TestAnExpiredKeyIsToldSoToItsHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Kit.Project(b.Kit.Tenant())
	_, key := b.ServiceAccount(project, authz.ProjectRead)
	secret, err := token.ParseSecret(key)
	require.NoError(t, err)
	const ask = `{ viewer { actor { id } } }`
	require.Empty(t, b.post(key, ask, nil).Errors)
	exchanged := forged(b.Ring, secret.ID, nil, nil, nil)
	require.Empty(t, b.post(exchanged, ask, nil).Errors)
	b.SQL(`UPDATE service_account_key SET expires_at = now() - interval '1 second' WHERE id = $1`, secret.ID)
	for name, credential := range map[string]string{"the key": key, "a token of it": exchanged} {
		got := b.post(credential, ask, nil)
		require.Equal(t, string(fault.TokenExpired), got.code(), name)
	}
	b.SQL(`UPDATE service_account_key SET revoked_at = now() WHERE id = $1`, secret.ID)
	require.Equal(t, string(fault.Unauthenticated), b.post(key, ask, nil).code(), "a revoked key is not merely expired")
}
