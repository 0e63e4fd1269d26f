package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answering are lines of which each command of the tool has at least one.
var answering = []string{
	"whoami", "projects", "projects permissions", "apps list", "apps show hello", "apps fit hello",
	"allocations list", "allocations request --shape gpu-slice --gpus 2", "allocations release slot-1 --reason done",
	"launch hello --name one --allocation slot-1 --component worker=2 --set greeting=hi --wait",
	"launch hello --name two --allocation alc_1",
	"instances list", "instances show one", "ops list", "ops list --instance one", "ops show op_1", "ops watch op_1",
	"events tail one", "events tail -f one", "events tail -f", "events tail one --after c0 --limit 1",
	"action list one", "action run one greet --set name=world", "decommission one --reason over --wait", "nodes",
	"nodes walls na",
	"nodes show na", "nodes fleet", "nodes cordon na --reason fan", "nodes uncordon na",
	"nodes drain na --force --reason fan --yes",
	"nodes retire na --lost --reason fire --yes", "nodes delete na --yes", "allocations devices slot-1",
	"allocations request --isolation vm --profile nesting", "audit list",
	"admin tenant create acme --display-name Acme", "admin project create demo", "admin user list",
	"admin user create bob@example.com --display-name Bob --tenant ten_1", "admin user login-link usr_2",
	"admin service-account list", "admin service-account create robot --permission allocation.read",
	"admin key create sa_1",
	"admin key revoke key_3 --reason leaked", "admin grant usr_2 project_viewer", "admin revoke rb_1",
	"admin entitle hello",
	"admin unentitle hello", "admin app create hello --family apps", "admin artifact list",
	"admin artifact publish registry/hello@sha256:abc --name controller",
	"admin artifact promote art_1 --to staged --reason checked",
	"admin manifest promote man_1 --to staged --reason smoked --smoke-instance ins_1", "admin adapter list",
	"admin adapter register hello http://hello:8080", "admin node enrol na --ttl 30m",
	"members list one", "members show one/worker/0",
	"members add one --component worker --count 2 --allocation slot-1 --yes",
	"members drain mem_1 --plan", "members remove mem_1 --force --reason broken --yes --wait",
	"members remove mem_1 mem_2 --yes",
	"members scale one --component worker --count 1 --yes", "members scale one --component worker --count 1 --plan",
	"members cordon mem_1",
	"members uncordon mem_1 --wait", "members recover mem_1", "members label mem_1 zone=b rack-",
	"members replace mem_1 --shape gpu-slice --gpus 1 --no-plan", "instances upgrade one --set greeting=hey --plan",
	"instances rollback one --generation 1 --yes", "instances generations one",
	"instances decommission one --plan-hash abc",
	"operations show op_9", "operations wait op_1", "operations cancel op_1 --reason wrong",
	"operations retry op_9 --deadline 10m", "operations retry op_9 --plan",
	"tasks list one/worker/0", "tasks show tsk_1", "logs one/worker/0 --tail 5", "top one", "top --sort memory",
	"logs -f one --process server --since 10m", "admin tenant list",
	"secrets list one --ended", "secrets issue one joining --life 10m --reason joins",
	"secrets rotate sec_1 --overlap 1m",
	"secrets revoke sec_1 --reason leaked",
	"webhooks list", "webhooks create https://hooks.example.com/x --event apps.instance.* --description pager",
	"webhooks update whk_1 --pause",
	"webhooks delete whk_1 --reason over", "webhooks rotate whk_1 --overlap 1h",
	"webhooks deliveries whk_1 --state dead",
	"webhooks redeliver whd_1", "webhooks replay whk_1 --after p1.2.3 --reason lost",
	"orphans list --resolved", "orphans retry orp_1", "usage sum --hourly", "usage list --meter gpu_seconds",
	"usage sources",
	"usage quarantine", "usage quarantine --all", "prices list", "prices set gpu-large 2.50 --currency eur",
	"volumes list --deleted", "volumes show home", "volumes create scratch --class parallel --size 20",
	"volumes create scratch --class parallel --size 20 --plan", "volumes resize home --size 20 --plan",
	"volumes resize home --size 20 --reason full", "volumes delete vol_1 --reason over", "storage-classes list",
	"storage-classes create parallel --kind shared --title Files", "storage-classes update disk --disable",
	"policy show", "policy show --platform", "policy effective", "policy preview testdata/policy.json --tenant ten_1",
	"policy set testdata/policy.json --reason agreed", "entitlements list --ended", "entitlements revoke hello",
	"entitlements grant hello --max-instances 2 --versions >=1.2 --expires 2030-01-01T00:00:00Z --reason trial",
	"why apps.instance.create prj_1", "why apps.instance.create", "why node.cordon --platform",
	"why apps.member.add one",
	"why apps.instance.read ins_1 --subject usr_2", "triage op_1",
	"triage op_1 --plan", "triage op_1 --do --yes", "triage op_1 --preview",
	"apps onboarding hello", "apps onboarding hello --version 1.2.0 --keep --reason release",
	"gaps list --app hello --state open", "gaps show gap_1",
	"gaps raise hello --kind missing-event --title queue --description full --evidence https://x.example",
	"gaps decide gap_1 --to accepted --reason all", "gaps close gap_1 --release 0.42.0 --reason done",
	"control-planes list --ended", "control-planes offer one --to prj_2 --reason shared",
	"control-planes accept cps_1 --reason yes",
	"control-planes decline cps_1", "control-planes withdraw cps_1 --reason enough", "control-planes detach cps_1",
	"control-planes impact one",
	"sessions list", "sessions end ses_2", "sessions end-all --reason lost",
	"token --life 10m --permission project.read",
	"admin tenant rename ten_1 Acme", "admin project rename Demo", "admin project delete --reason over",
	"admin user update usr_2 --disable",
	"admin role list", "admin role bindings", "admin role permissions",
	"admin service-account update sa_1 --object ins_1 --max-risk write --operations-per-hour 5",
	"admin service-account delete sa_1",
	"admin user invite usr_2", "admin user invitations", "admin user revoke-invitation usr_2 --reason left",
	"break-glass made rb_1",
	"admin tenant domains ten_1 --domain acme.test --reason checked",
	"admin service-account update sa_1 --lift max-risk --plan",
	"admin key rotate key_3 --overlap 1h",
	"artifact list --quarantined", "artifact show art_1", "artifact show sha256:abc",
	"artifact publish registry/hello:1.2.0 --digest sha256:abc --project prj_1",
	"artifact verify art_1", "artifact quarantine art_1 --reason leaked", "artifact release art_1 --reason checked",
	"promote artifact sha256:abc --to staged --reason checked",
	"promote manifest hello@1.2.0 --to canary --percent 20 --reason careful",
	"manifest lint testdata/manifest.json", "manifest publish testdata/manifest.json",
	"manifest list --app hello --stage active",
	"manifest show hello@1.2.0", "manifest smoke hello@1.2.0 --name smoke-1 --gpus 2",
	"evidence submit man_1 testdata/manifest.json --kind tenancy",
	"source list", "source show team", "source add team registry.example.com/team --tenant ten_1",
	"source update src_1 --off --reason moved",
	"source credential src_1 --none --reason open",
	"source key add team testdata/signer.pub --name release --until 2030-01-01T00:00:00Z",
	"source key revoke sgk_1 --reason lost",
	"admin runner list", "admin runner register ci --public-key cHVibGlj --reason ours",
	"admin runner revoke rnr_1 --reason stolen",
	"admin app terms hello --min-launches 3 --min-minutes 30 --grace-hours 0 --second-approver --reason careful",
	"canary report hello@1.2.0", "canary percent man_1 50 --reason grows",
	"prices book --of-tenant ten_1",
	"prices add tokens 0.002 --currency eur --per 1000 --tier 1000000=0.004 --of-tenant ten_1 --reason list",
	"prices rerate tokens 0.001 --currency eur --from 2026-11-01T00:00:00Z --reason dear", "billing periods ten_1",
	"billing runs ten_1",
	"billing verify brn_1", "billing statement --period bpr_1",
	"billing why bpr_1 k1", "billing credit list ten_1",
	"billing credit grant ten_1 50 --currency eur --reason welcome",
	"billing account ten_1 --currency eur --grace 3600 --reason moved", "billing reopen bpr_1",
	"billing reopen bpr_1 --plan-hash h1 --reason late",
	"launch hello --name one --allocation slot-1 --plan", "allocations release slot-1 --plan",
	"cost show", "cost by person", "cost by tenant --platform", "budget list",
	"budget set project prj_1 500 --currency eur --reason agreed",
	"budget remove bud_1 --reason over",
	"projects quota", "projects quota --max-members 8 --max-gpus none --max-volume-gib 500 --reason agreed",
}

// TestAnswers holds every command's answer as a table, as JSON and as ids to a golden file.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, line := range answering {
		args := strings.Fields(line)
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var text strings.Builder
			for _, form := range [][]string{nil, {"-o", "json"}, {"-q"}} {
				full := append(append([]string{}, args...), form...)
				got := r.run(t.Context(), "", full...)
				require.Zero(t, got.code, got.stderr)
				text.WriteString(r.text(full, got))
			}
			golden(t, goldenName(line), text.String())
		})
	}
}

// goldenName returns the line with dashes in place of all but small letters and digits, cut at 48 characters.
func goldenName(line string) string {
	keep := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	name := strings.Trim(strings.Map(keep, line), "-")
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return name[:min(len(name), 48)]
}
