package triage_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/supportbundle"
	"github.com/gpuaas/app-platform/service/triage"
)

// canaries are secrets whose parts occur nowhere else.
var canaries = []string{
	"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKr6Z1yqfzTQSbLJm0FQ0QZ0sGJz1mKXv3vQ4dW8rTtJoAoGCCqGSM49\n-----END EC " +
		"PRIVATE KEY-----",
	"postgres://canaryuser:canaryword@db.internal:5432/main",
	"Bearer canary0token1f2c9d1e8b7a4c3d",
}

// telltales are pieces of the canaries: none of them may be anywhere.
var telltales = []string{"PRIVATE KEY", "PRIVATEKEY", "MHcCAQEE", "zTQSbLJm0", "vQ4dW8rTt", "canaryuser", "canaryword",
	"canary0token", "1f2c9d1e8b7"}

// planted is one text with each canary in each encoding, plain and over lines, within the bounds of every column.
func planted() string {
	var all []string
	for _, canary := range canaries {
		quoted, _ := json.Marshal(canary)
		encoded := base64.StdEncoding.EncodeToString([]byte(canary))
		all = append(all, canary, string(quoted), encoded, overLines(encoded, 12), overLines(canary, 9),
			url.QueryEscape(canary))
	}
	return strings.Join(all, "\nthen ")
}

func overLines(text string, width int) string {
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return strings.Join(append(lines, text), "\n")
}

// found returns the first telltale in a text, in the same without white space, or in what either decodes to.
func found(text string, depth int) string {
	bare := strings.Join(strings.Fields(text), "")
	for _, from := range []string{text, bare} {
		for _, one := range telltales {
			if strings.Contains(from, one) {
				return one
			}
		}
	}
	if depth == 0 {
		return ""
	}
	for _, decoded := range decoded(text, bare) {
		if one := found(decoded, depth-1); one != "" {
			return one
		}
	}
	return ""
}

var run64 = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`)

// decoded is what a plain decoder undoes: JSON, percent signs, base64 and gzip.
func decoded(texts ...string) (all []string) {
	for _, text := range texts {
		var unquoted string
		if json.Unmarshal([]byte(`"`+strings.Trim(text, `"`)+`"`), &unquoted) == nil && unquoted != text {
			all = append(all, unquoted)
		}
		if plain, err := url.QueryUnescape(text); err == nil && plain != text {
			all = append(all, plain)
		}
		for _, run := range run64.FindAllString(text, -1) {
			run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
			for skip := range 4 {
				part := run[skip:]
				bytes64, err := base64.RawStdEncoding.DecodeString(part[:len(part)&^3])
				if err != nil {
					continue
				}
				all = append(all, string(bytes64))
				if zip, err := gzip.NewReader(bytes.NewReader(bytes64)); err == nil {
					plain, _ := io.ReadAll(io.LimitReader(zip, 1<<16))
					all = append(all, string(plain))
				}
			}
		}
	}
	return all
}

// scan returns the first telltale in a bundle: in a whole line, or in a text of its row.
func scan(t *testing.T, content string) string {
	t.Helper()
	for line := range strings.Lines(content) {
		if one := found(line, 3); one != "" {
			return one
		}
		var value any
		require.NoError(t, json.Unmarshal([]byte(line), &value))
		if one := within(value); one != "" {
			return one
		}
	}
	return ""
}

func within(value any) string {
	switch value := value.(type) {
	case string:
		return found(value, 3)
	case []any:
		for _, one := range value {
			if hit := within(one); hit != "" {
				return hit
			}
		}
	case map[string]any:
		for key, one := range value {
			if hit := found(key, 3) + within(one); hit != "" {
				return hit
			}
		}
	}
	return ""
}

// The canaries are in every text that a tenant, an adapter or a node can write, and in none of the bundle.
func TestNoCanaryIsInASupportBundle(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant, other := kit.Tenant(), kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	_, manifest := kit.Launchable(project, "apps")
	instance := kit.Instance(project, manifest, lifecycle.InstanceRunning, kit.Allocation(project, node))
	op := kit.Operation(instance, lifecycle.MembersAdd, lifecycle.OperationRunning)
	text, document := planted(), `{"text": `+quoted(planted())+`}`
	plant := func(table, columns, where string, args ...any) {
		var set []string
		for column := range strings.FieldsSeq(columns) {
			if name, ok := strings.CutSuffix(column, ":json"); ok {
				set = append(set, name+" = $2::jsonb")
			} else {
				set = append(set, column+" = $1")
			}
		}
		kit.SQL(fmt.Sprintf(`UPDATE %s SET %s WHERE $1::text <> '' AND $2::jsonb IS NOT NULL
			AND %s`, table, strings.Join(set, ", "), where), append([]any{text, document}, args...)...)
	}
	kit.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state, attempt,
		started_at)
		VALUES ($1, $2, $3, $4, 'await', 0, 'RUNNING', 1,
		now())`, ids.New(ids.OperationStep), tenant.ID, project.ID, op.ID)
	var member ids.ID
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1
		LIMIT 1`, instance.ID).Scan((*string)(&member)))
	kit.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind,
		spec,
		spec_digest, state, timeout_seconds, idempotency_key, created_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'RUN', '{}', '', 'FAILED',
		60, 'x', now(), now())`, ids.New(ids.NodeTask), tenant.ID, project.ID, instance.ID, member, node.ID, op.ID)
	for seq, message := range append([]string{text, "it runs"}, canaries...) {
		kit.SQL(`INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug,
			permission_family, operation_id, message, payload, correlation_id, occurred_at) VALUES ($1, $2, $3, $4, $5,
			'apps.instance.progress', 'x', 'apps', $6, $7, $8, $9,
			now())`, ids.New(ids.Event), tenant.ID, project.ID, instance.ID,
			900+seq, op.ID, message, document, op.CorrelationID)
	}
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, actor_name, permission_key,
		action, allowed,
		object_id, reason, before, after, correlation_id, created_at) VALUES ($1, $2, $3, 'USER', $5, $5, 'apps.member.add',
		'addMembers', true, $4, $5, $6, $6, $7, now())`, ids.New(ids.Audit), tenant.ID, project.ID, instance.ID,
		text, document, op.CorrelationID)
	plant("operation", "message reason requester_name phase cancel_reason cancel_message desired_change:json "+
		"evidence:json adapter_status:json adapter_name", "id = $3", op.ID)
	plant("operation_step", "message evidence:json", "operation_id = $3", op.ID)
	plant("node_task", "message stdout stderr result:json spec:json", "operation_id = $3", op.ID)
	plant("instance", "health_message config:json", "id = $3", instance.ID)
	plant("member", "health_message adapter_detail:json labels:json", "instance_id = $3", instance.ID)

	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	for _, about := range []string{string(op.ID), string(instance.ID), op.CorrelationID} {
		bundle, err := service.Bundle(admin, about)
		require.NoError(t, err)
		require.Empty(t, scan(t, bundle.Content))
		_, err = supportbundle.Verify(strings.NewReader(bundle.Content))
		require.NoError(t, err)
		for _, name := range []string{"request", "operation", "step", "blocker", "task", "event", "audit", "instance",
			"member"} {
			require.Contains(t, bundle.Content, `{"section":"`+name+`"`, "a section that is empty proves nothing")
		}
		require.Contains(t, bundle.Content, `"message":"it runs"`)
		require.Equal(t, supportbundle.Digest([]byte(bundle.Content)), bundle.Digest)
		// The report has what the bundle leaves out: the scan would have found it.
		report, err := service.Report(admin, about)
		require.NoError(t, err)
		shown, err := json.Marshal(report)
		require.NoError(t, err)
		require.NotEmpty(t, scan(t, string(shown)+"\n"))
		require.NotEmpty(t, scan(t, rogue(t, bundle.Content, text)), "a field that nobody scans is found")
	}
	requireNoted(t, kit, admin, service, op)
	// A caller chooses correlation ids: one that the platform did not make is given as its digest.
	kit.SQL(`UPDATE operation SET correlation_id = 'canary0token1f2c9d1e8b7' WHERE id = $1`, op.ID)
	chosen, err := service.Bundle(admin, string(op.ID))
	require.NoError(t, err)
	require.Empty(t, scan(t, chosen.Content))
	require.Contains(t, chosen.Content, `"correlationId":"sha256:`)
	kit.SQL(`UPDATE operation SET correlation_id = $2 WHERE id = $1`, op.ID, op.CorrelationID)

	stranger := kit.As(kit.User(other, platformtest.Across(authz.TenantAdmin, other)))
	handed := kit.Count("audit_entry", "action = 'supportBundle'")
	_, err = service.Bundle(stranger, string(op.ID))
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	require.Equal(t, handed, kit.Count("audit_entry", "action = 'supportBundle'"), "nothing was handed out")

	// A caller that may not read the audit gets a bundle that states the omission.
	_, reader := kit.ServiceAccount(project, authz.OperationRead)
	bundle, err := service.Bundle(kit.With(reader), string(op.ID))
	require.NoError(t, err)
	for _, hidden := range []string{"task", "event", "audit", "instance", "member"} {
		require.NotContains(t, bundle.Content, `{"section":"`+hidden+`"`)
	}
	require.Contains(t, bundle.LeftOut, supportbundle.Omission{What: "audit rows",
		Why: "the caller does not have the permission key for them", Count: 1})
}

// requireNoted requires that the audit has what was handed out, and that it leads triage to nothing else than before.
func requireNoted(t *testing.T, kit *platformtest.Kit, admin context.Context, service *triage.Service,
	op *db.Operation) {
	t.Helper()
	before := kit.Count("audit_entry", "action = 'supportBundle'")
	_, err := service.Report(admin, string(op.ID))
	require.NoError(t, err)
	require.Equal(t, before, kit.Count("audit_entry", "action = 'supportBundle'"), "a report is no export")
	bundle, err := service.Bundle(admin, string(op.ID))
	require.NoError(t, err)
	require.Equal(t, 1, kit.Count("audit_entry", `action = 'supportBundle' AND allowed AND permission_key = 'operation.read'
		AND object_id = $1 AND project_id = $2 AND instance_id = $3 AND after->>'digest' = $4`, op.ID, op.ProjectID,
		*op.InstanceID, bundle.Digest))
	report, err := service.Report(admin, string(op.ID))
	require.NoError(t, err)
	require.Equal(t, op.CorrelationID, report.CorrelationID)
	for _, one := range report.Evidence {
		require.NotEqual(t, "supportBundle", one.What)
	}
}

// rogue is a bundle with one more field, as somebody would add it without Clean.
func rogue(t *testing.T, content, text string) string {
	t.Helper()
	line, err := json.Marshal(map[string]any{"section": "operation", "row": map[string]string{"message": text}})
	require.NoError(t, err)
	return content + string(line) + "\n"
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}
