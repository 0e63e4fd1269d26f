package tx_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/platformtest"
)

// definers are the functions that run as the owner and so see every tenant's rows, each with what it may reveal.
var definers = map[string]string{
	"scope":          "the transaction's own scope, if its seal fits",
	"set_scope":      "nothing; for platform.enter alone",
	"note_requester": "nothing: a trigger",
	"touch_instance": "nothing: a trigger",
	"prove_callers": "which rights who shows a session of a person has, as a digest, and whether a project " +
		"is there",
	"prove_instance": "numbers of an instance's rows, to who shows a session of a person with rights of its " +
		"own there",
	"prove_instances":    "the same of a page of a project's instances",
	"budget_rate":        "what is rented in a tenant that the caller is seen in costs, as a sum",
	"budgets_over":       "the budgets of a tenant that the caller is seen in, for what the caller asks for",
	"projects_of":        "the ids of a tenant's projects, deleted ones too, to who is seen in the tenant",
	"redeem_opening":     "when an opening ends, to who shows its ticket",
	"enter_opening":      "who opened an endpoint, with their rights, to who shows its secret",
	"enter_operator":     "whom an adapter acts as for an instance, to who shows a token for it",
	"operator_of":        "the account that was chosen for an instance, to the account of the instance's adapter",
	"own_tenant":         "the id of the platform's own tenant, which is no secret",
	"hold_devices":       "nothing: a trigger",
	"name_devices":       "nothing: a trigger",
	"bind_task":          "nothing: a trigger",
	"member_binding":     "the walls of a member; for bind_task alone",
	"free_address":       "an address that no member has; for give_network alone",
	"take_ranges":        "ranges that no member has; for give_network alone",
	"give_network":       "nothing: a trigger",
	"give_posix":         "the caller's own account in a tenant that the caller is seen in",
	"free_ranges":        "nothing: a trigger",
	"note_usage":         "nothing: the calling node's own members, of which it keeps samples",
	"guard_volumes":      "nothing: a trigger",
	"retire_volumes":     "nothing: a trigger",
	"seat_volumes":       "nothing: a trigger",
	"tell_volume":        "nothing: a trigger",
	"volume_deleter":     "which node deletes the files of a volume, to who has its row",
	"storage_offers":     "of each storage class how many nodes offer it, and sums of bytes, naming no node",
	"open_volume":        "the nodes that serve the files of a volume now, to who has its row",
	"volume_nodes":       "the nodes where files of a volume are or were, to who has its row",
	"node_volumes":       "the volumes of the calling node's own members, and those that it is to delete",
	"report_volumes":     "nothing: the calling node's own volumes, of which it keeps what the node says",
	"seat_network":       "the instances of the calling node's own members, to which it gives addresses",
	"node_network":       "the network of the calling node's own members; nothing for any other caller",
	"any_walls":          "whether some node has such walls",
	"capacity_now":       "what could be placed now by region and SKU, naming no node and no tenant",
	"enter":              "who shows a credential, with its rights",
	"account_voucher":    "what the maker of an account may give, to who reaches its project",
	"made_under":         "what was made under a binding, to who reaches the binding",
	"node_enters":        "whether a node's credential lets it in, to the workers alone",
	"slug_of":            "the short name of a tenant, to the workers alone",
	"still_given":        "whether a binding holds; for the other functions alone",
	"voucher":            "what somebody may give; for the other functions and the workers alone",
	"accept_invited":     "whether an invitation was accepted, which the process has verified by a login",
	"begin_invited":      "nothing: it notes by which invitation a login was begun",
	"invitation_of":      "the name of the tenant of an invitation, to who shows its secret",
	"invite":             "whether somebody of the caller's tenant waits for an invitation",
	"end_invitations":    "whether somebody of the caller's tenant had one",
	"enter_key":          "who shows a key, with what it may use; for platform.enter alone",
	"bindings_of":        "a person's bindings; for platform.enter alone",
	"attached_to":        "shared control planes of projects; for platform.enter alone",
	"bindings_explained": "a person's bindings in a tenant that the caller is seen in",
	"granters":           "who holds roles in a tenant that the caller is seen in",
	"begin_session":      "nothing; for the other logins alone",
	"redeem_login":       "the person of a one-time code, to whoever shows its secret",
	"end_session":        "whether the session of a secret was ended",
	"rotate_session":     "when the session of a secret ends",
	"begin_oidc":         "nothing: it notes a login that begins",
	"take_oidc":          "what was noted, to whoever shows the login's secrets",
	"know_identity":      "the person of an identity; for the other logins alone",
	"oidc_session":       "the person of an identity, which the process has verified: see docs/adr/0015",
	"oidc_code":          "the person of an identity, which the process has verified: see docs/adr/0015",
	"delete_project":     "how much ended, of a project in the caller's scope",
	"pick_node":          "a node with room for an allocation",
	"generation":         "which past of the database this is",
	"arrive":             "which past of the database this is; it notes a new one",
	"began":              "when the present past of the database began",
	"kept": "whether a place in a feed is of the database's own past, to callers whose read of the feed " +
		"shows it anyway",
	"hold_manifest":     "the stage of a manifest, which all may read",
	"hold_operation":    "whether an operation is open, which its own token is let in by",
	"hold_artifacts":    "name, digest, stage and quarantine of what a manifest pins, which all may read",
	"users_of_manifest": "how many live instances use a manifest, to who reaches its app's publisher",
	"live_users":        "how many instances use an artifact, to who may change it",
	"source_credential": "the enveloped credential of a source that the caller sees",
	"canary_launches": "how launches of a canary and beside it went, without a name of any, to who reaches the " +
		"publisher",
	"canary_confidence": "how many launches of a canary count and by which rule, without a name of any, to who " +
		"reaches the publisher",
	"wake_operation":     "nothing: it makes an operation due",
	"hold_offered":       "whether a project of the caller's tenant lives, to who reaches the project that offers",
	"hold_shared":        "the instance of a share, to who reaches one of its ends",
	"tell_shared":        "an event's number, to who reaches one of its ends",
	"shared_planes":      "the instances of shares, to who reaches one of their ends",
	"attached_projects":  "the projects attached to an instance, to who reaches its owner",
	"impact_of":          "what a change of an instance touches, to who reaches it",
	"secret_is_callers":  "whether a secret is bound to the caller",
	"peek_secret":        "the enveloped value of a secret that is bound to the caller",
	"deliver_secret":     "how often a secret that is bound to the caller was delivered",
	"workers_heard":      "whether workers live",
	"plan_known":         "whether a worker that lives knows a kind or step plan",
	"adapter_busy":       "whether workers make no further calls to an adapter",
	"worker_heard":       "whether a worker lives",
	"forget_secrets":     "how many rows went",
	"forget_keys":        "how many rows went",
	"forget_credentials": "how many rows went",
	"arrive_once":        "nothing: a trigger",
	"place_event":        "nothing: a trigger",
	"prove_node":         "nothing: a trigger",
	"note_allocation":    "nothing: a trigger",
	"note_member":        "nothing: a trigger",
	"note_orphan":        "nothing: a trigger",
	"note_volume":        "nothing: a trigger",
	"hold_source":        "the time; for the triggers alone",
	"node_proved_to":     "until when a node has proved that it runs, to who rents there",
	"guard_transition":   "nothing: a trigger",
	"balance_ledger":     "nothing: a trigger",
	"guard_live_project": "nothing: a trigger",
	"guard_system":       "nothing: a trigger",
	"guard_share":        "nothing: a trigger",
	"end_shares":         "nothing: a trigger",
	"end_secrets":        "nothing: a trigger",
}

// globals are the unique indexes that reach over tenants, by which a name's being taken can be felt, each with the
// reason why that is borne. An index on ids alone is not listed: ids are random, and cannot be guessed.
var globals = map[string]string{
	"member_address_live": "addresses are the installation's; a trigger alone gives them, and a writer " +
		"names none",
	"access_scope_pkey":      "numbers of the installation; login roles have no right to the table",
	"storage_class_name_key": "the platform's",
	"tenant_slug_key":        "staff alone make tenants",
	"tenant_one_platform":    "staff alone make tenants",
	"generation_log_pkey":    "numbers of the installation; login roles have no right to the table",
	"member_pool_pkey":       "a constant; login roles have no right to the table",
	"member_range_pkey":      "login roles have no right to the table",
	"person_tenant_email": "an address is one person's in a tenant, whose people the caller sees; of " +
		"other tenants nobody learns anything",
	"person_staff_email":                "an address is one person's among the platform's staff, who alone adds staff",
	"app_slug_key":                      "the catalog's; a tenant's own begin with its short name",
	"adapter_name_key":                  "the platform's; a tenant's own begin with its short name",
	"compute_node_name_key":             "the platform's",
	"artifact_platform_digest":          "of the platform's own artifacts",
	"artifact_source_platform_name":     "of the platform's own sources",
	"artifact_source_platform_location": "of the platform's own sources",
	"manifest_app_slug_version":         "the catalog's",
	"manifest_one_active":               "the catalog's",
	"manifest_one_canary":               "the catalog's",
	"sku_price_sku_key":                 "the platform's",
	"billing_look_pkey":                 "a constant; workers alone write it",
	"usage_source_pkey":                 "random ids of allocations and instances; workers alone write it",
	"evidence_runner_name_key":          "the platform's",
	"evidence_runner_public_key_key":    "the platform's",
	"audit_checkpoint_seq_key":          "a counter of the sealer",
	"audit_link_pkey":                   "a counter of the sealer",
	"lifecycle_transition_pkey":         "a constant table of the domain",
	"policy_overlay_platform_live":      "of the platform's one overlay",
	"externalidentity_issuer_subject":   "a subject of an identity provider is one person's; functions alone write it",
}

// loose are references from a tenant's rows into other owned tables that do not carry the tenant, each with the reason.
var loose = map[string]string{
	"role_binding → person":      "a role may go to platform staff, who have no tenant",
	"volume_node → volume":       "functions alone read and write it",
	"session → person":           "functions alone write sessions",
	"login_code → person":        "the policy asks for the person's tenant",
	"external_identity → person": "functions alone write it",
	"invitation → person":        "functions alone write it",
	"audit_link → audit_entry":   "of the sealer alone",
	"device_hold → allocation":   "a trigger alone writes it, and nobody reads it",
	"manifest_artifact → artifact": "what a manifest pins is part of the catalog; the verb lets a publisher pin its " +
		"own and the platform's",
	"artifact → artifact_source":   "a tenant's artifact may come from the platform's source",
	"signer_key → artifact_source": "beside the reference that carries the tenant, for sources that have none",
	"artifact_smoke → artifact":    "beside the reference that carries the tenant, for artifacts that have none",
	"adapter → service_account": "a platform's adapter has no tenant; the verb lets a sandbox name its own " +
		"project's alone",
	"artifact_part → artifact": "beside the reference that carries the tenant, for artifacts that have none",
}

// column1 collects a query's one column.
func column1(t *testing.T, k *platformtest.Kit, sql string, args ...any) []string {
	t.Helper()
	rows, err := k.Admin.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

func TestFunctionsThatRunAsTheOwnerAreReviewedAndTakeNoNamesFromTheirCaller(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	found := column1(t, k, `SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE n.nspname IN ('public', 'platform') AND p.prosecdef`)
	for _, name := range found {
		require.Contains(t, definers, name, "what may %s tell, and whom? review it and list it among definers", name)
	}
	require.Empty(t, column1(t, k, `SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE n.nspname IN ('public', 'platform') AND p.prosecdef AND p.proname <> 'scope'
			AND NOT EXISTS (SELECT FROM unnest(p.proconfig) c WHERE c LIKE
			'search\_path=%')`), "a definer function without a search path of its own")
	require.Equal(t, []string{"scope"}, column1(t, k, `SELECT p.proname FROM pg_proc p
		JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE n.nspname IN ('public', 'platform') AND p.prosecdef AND p.prorettype <> 'trigger'::regtype
		AND has_function_privilege('public', p.oid, 'EXECUTE')`),
		"whom is it for? revoke it from PUBLIC")
}

func TestUniqueIndexesTellATenantNothingOfAnother(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	for _, name := range column1(t, k, `SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
		JOIN pg_namespace n ON n.oid = i.relnamespace
		WHERE n.nspname IN ('public', 'platform') AND x.indisunique AND NOT EXISTS (
			SELECT FROM unnest(x.indkey) c JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = c
			WHERE a.attname = 'id' OR a.attname LIKE '%\_id')`) {
		require.Contains(t, globals, name,
			"by a violation of %s a tenant learns of another's value: give it the tenant or the project, or say "+
				"among globals why that is borne", name)
	}
}

func TestReferencesCarryTheTenant(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	for _, reference := range column1(t, k, `SELECT c.conrelid::regclass || ' → ' || c.confrelid::regclass
		FROM pg_constraint c
		WHERE c.contype = 'f' AND cardinality(c.conkey) = 1 AND c.confrelid <> 'tenant'::regclass
			AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.confrelid
			AND a.attname IN ('tenant_id', 'project_id'))`) {
		require.Contains(t, loose, reference,
			"policies do not bind foreign keys: refer to (id, tenant_id), or say among loose why not")
	}
}

func TestEveryTableIsWalledAndNoPolicyReadsASettingItself(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	require.Empty(t, column1(t, k, `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'platform') AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity
		AND c.relforcerowsecurity)
			AND c.relname NOT IN ('goose_db_version', 'lifecycle_transition')`))
	require.Empty(t, column1(t, k,
		`SELECT tablename || '.' || policyname FROM pg_policies WHERE qual ~ 'current_setting'
			OR with_check ~ 'current_setting'`),
		"a setting may be forged: ask platform.scope")
	require.Empty(t, column1(t, k,
		`SELECT tablename || '.' || policyname FROM pg_policies WHERE roles && ARRAY['public']::name[]`),
		"a policy is for a role")
	require.Empty(t, column1(t, k, `SELECT tablename || '.' || policyname FROM pg_policies p WHERE 'app_api' = ANY (roles)
		AND (qual = 'true' OR with_check = 'true')
		AND EXISTS (SELECT FROM information_schema.columns c WHERE c.table_name = p.tablename
		AND c.column_name IN ('tenant_id', 'project_id', 'user_id'))`),
		"a policy that lets every tenant at every tenant's rows")
	require.Empty(t, column1(t, k, `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'platform') AND c.relkind IN ('v', 'm')`), "a view sees with its owner's eyes")
}

func TestLoginRolesAreNobodySpecial(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	const login = `(VALUES ('app_api'), ('app_operator'), ('app_node'), ('app_worker')) r (name)`
	require.Empty(t, column1(t, k, `SELECT rolname FROM pg_roles JOIN `+login+` ON r.name = rolname
		WHERE rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication OR rolinherit`))
	require.Empty(t, column1(t, k,
		`SELECT rolname FROM pg_roles WHERE rolname = 'app_owner' AND (rolsuper OR rolbypassrls OR rolcreaterole
			OR rolreplication)`))
	require.Empty(t, column1(t, k, `SELECT r.name FROM `+login+` JOIN pg_auth_members m ON m.member = r.name::regrole`),
		"a login role that is another as well")
	require.Empty(t, column1(t, k, `SELECT c.relname FROM pg_class c JOIN `+login+` ON c.relowner = r.name::regrole
		UNION ALL SELECT p.proname FROM pg_proc p JOIN `+login+` ON p.proowner = r.name::regrole`), "a login role that owns something")
	require.Empty(t, column1(t, k, `SELECT r.name || ' ' || n.nspname FROM `+login+`, pg_namespace n
		WHERE n.nspname NOT LIKE 'pg\_%' AND has_schema_privilege(r.name, n.oid,
		'CREATE')`), "a login role that can make things")
	require.Empty(t, column1(t, k, `SELECT r.name || ' ' || c.relname
		FROM `+login+`, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'platform') AND c.relkind IN ('r', 'p')
			AND has_table_privilege(r.name, c.oid, 'TRUNCATE, REFERENCES, TRIGGER')`), "policies do not bind these")
}

func TestNobodyChangesWhatIsAppendOnly(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	tables := []string{"app_instance_event", "audit_entry", "audit_link", "audit_checkpoint", "instance_generation",
		"usage_record", "usage_quarantine", "allocation_fact", "node_gap", "ledger_tx", "ledger_entry", "billing_run",
		"billing_line", "credit_grant", "allocation_requester"}
	changes := column1(t, k, `SELECT r.name || ' ' || t.name || ' ' || p.name FROM
		(VALUES ('app_api'), ('app_operator'), ('app_node'), ('app_worker')) r (name), unnest($1::text[]) t (name), (VALUES
		('UPDATE'), ('DELETE'), ('TRUNCATE')) p (name)
		WHERE has_table_privilege(r.name, t.name, p.name) OR p.name = 'UPDATE'
		AND has_any_column_privilege(r.name, t.name, p.name)`, tables)
	require.Empty(t, changes, strings.Join(tables, ", "))
}
