package agent_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

type cloudResult struct {
	Code, Status   string
	Errors, Stages []string
	Output         string
}

func cloudTask(id, instance, userData string) gql.NodeWork {
	task := newTask(id, "CLOUD_INIT", map[string]any{"instanceId": instance, "userData": userData, "hostname": "web-1"})
	task.TimeoutSeconds = 120
	return task
}

// boot is do with the time that a boot takes on a busy machine.
func (r *rig) boot(task gql.NodeWork) standTask {
	r.t.Helper()
	r.give(task)
	return r.booted(task.Id)
}

func (r *rig) booted(id string) standTask {
	r.t.Helper()
	r.atLast(func() bool { found := r.seen(id); return found.ended() })
	return r.seen(id)
}

func (r *rig) atLast(condition func() bool) {
	r.t.Helper()
	require.Eventually(r.t, condition, 2*time.Minute, 20*time.Millisecond)
}

// cloudRig is a rig on which first boots are possible.
func cloudRig(t *testing.T) *rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	return newRig(t, "container")
}

const firstBoot = `#cloud-config
write_files:
  - path: /etc/app/env
    permissions: '0600'
    content: |
      KEY=value
runcmd:
  - [ sh, -c, 'hostname >> /var/boots; echo hello from a first boot' ]
`

func TestFirstBootIsRealAndHappensOnceForAnInstance(t *testing.T) {
	t.Parallel()
	r := cloudRig(t)
	// What keeps cloud-init from a machine's own boot says nothing of a member's.
	r.text("tsk_off", "mkdir -p /etc/cloud; touch /etc/cloud/cloud-init.disabled")
	node, err := os.Hostname()
	require.NoError(t, err)
	done := r.boot(cloudTask("tsk_a", "i-1", firstBoot))
	require.Equal(t, "SUCCEEDED", done.State, "%s: %s", done.message, done.result)
	first := resultOf[cloudResult](t, done)
	require.Equal(t, "done", first.Status)
	require.Empty(t, first.Errors)
	require.Equal(t, []string{"init-local", "init", "modules-config", "modules-final"}, first.Stages)
	require.Contains(t, first.Output, "hello from a first boot")
	require.NotContains(t, first.Output, "Invalid cloud-config")
	require.Contains(t, done.output["STDOUT"], "hello from a first boot")
	require.Empty(t, done.output["STDERR"])
	require.Equal(t, "web-1\nKEY=value\n600\n", r.text("tsk_l", "cat /var/boots /etc/app/env; stat -c %a /etc/app/env"))
	require.Equal(t, "600\n600\n", r.text("tsk_m",
		"stat -c %a /var/lib/cloud/seed/nocloud/user-data; stat -c %a /var/lib/cloud/instances/i-1/user-data.txt"))
	require.Equal(t, "web-1\n", r.text("tsk_n", "hostname"), "the name is the member's from then on")
	now, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, node, now, "the node keeps its name")

	again := r.boot(cloudTask("tsk_b", "i-1", strings.ReplaceAll(firstBoot, "hello", "never")))
	require.Equal(t, "SUCCEEDED", again.State)
	require.Equal(t, first.Stages, resultOf[cloudResult](t, again).Stages)
	require.Equal(t, "web-1\n", r.text("tsk_o", "cat /var/boots"), "the same instance changes nothing")

	other := r.boot(cloudTask("tsk_c", "i-2", strings.ReplaceAll(firstBoot, "KEY=value", "KEY=other")))
	require.Equal(t, "SUCCEEDED", other.State, other.message)
	require.Contains(t, resultOf[cloudResult](t, other).Output, "hello from a first boot")
	require.Equal(t, "web-1\nweb-1\nKEY=other\n", r.text("tsk_p", "cat /var/boots /etc/app/env"),
		"another one is another first boot")
}

func TestFirstBootThatFailsSaysWhat(t *testing.T) {
	t.Parallel()
	r := cloudRig(t)
	done := r.boot(cloudTask("tsk_a", "i-1", "#cloud-config\nruncmd:\n  - [ sh, -c, 'echo cannot go on; exit 3' ]\n"))
	require.Equal(t, "FAILED", done.State)
	result := resultOf[cloudResult](t, done)
	require.Equal(t, "CLOUD_INIT_FAILED", result.Code)
	require.Equal(t, "error", result.Status)
	require.NotEmpty(t, result.Errors)
	require.Contains(t, result.Output, "cannot go on")
	again := r.boot(cloudTask("tsk_b", "i-1", firstBoot))
	require.Equal(t, "FAILED", again.State, "the stored result of the same instance")
	require.Equal(t, "SUCCEEDED", r.boot(cloudTask("tsk_c", "i-2", firstBoot)).State)
}

func TestSealedUserDataIsOpenedOnTheNodeAndLoggedNowhere(t *testing.T) {
	t.Parallel()
	r := cloudRig(t)
	const secret = "tell-nobody-4711"
	data := "#cloud-config\nwrite_files:\n  - path: /etc/app/key\n    permissions: '0600'\n    content: " +
		secret + "\n"
	task := newTask("tsk_a", "CLOUD_INIT", map[string]any{"instanceId": "i-1",
		"userDataSealed": r.sealFor(instance, data)})
	task.TimeoutSeconds = 120
	done := r.boot(task)
	require.Equal(t, "SUCCEEDED", done.State, done.message)
	require.Equal(t, "1\n", r.text("tsk_l", "grep -cx "+secret+" /etc/app/key"))
	require.NotContains(t, string(done.result)+done.message+done.output["STDOUT"], secret)
	require.NotContains(t, r.log.text(), secret)
	require.NotContains(t, r.log.text(), base64.StdEncoding.EncodeToString([]byte(data))[:40])
	for _, dir := range []string{"journal.jsonl", filepath.Join("members", member, "state")} {
		require.NoError(t, filepath.WalkDir(filepath.Join(r.dir, dir),
			func(path string, entry os.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				raw, err := os.ReadFile(path)
				require.NotContains(t, string(raw), secret, path)
				return err
			}))
	}
}

func TestWhatAFirstBootLeavesRunningStaysUntilTheTeardown(t *testing.T) {
	t.Parallel()
	r := cloudRig(t)
	done := r.boot(cloudTask("tsk_a", "i-1",
		"#cloud-config\nruncmd:\n  - [ sh, -c, 'while sleep 0.05; do echo still here; done & "+
			"echo $! > /run/daemon' ]\n"))
	require.Equal(t, "SUCCEEDED", done.State, done.message)
	r.text("tsk_l", `kill -0 $(cat /run/daemon); n=$(wc -l < /var/log/cloud-init-output.log)
while test $(wc -l < /var/log/cloud-init-output.log) -le $n; do sleep 0.05; done`)
	found, err := r.manager().Residue(member)
	require.NoError(t, err)
	require.Greater(t, len(found.Processes), 1)
	left, err := r.manager().Teardown(context.Background(), member)
	require.NoError(t, err)
	require.True(t, left.Empty(), "%+v", left)
}

func TestKilledAgentFindsItsFirstBootAgain(t *testing.T) {
	t.Parallel()
	r := cloudRig(t)
	r.give(cloudTask("tsk_a", "i-1",
		"#cloud-config\nruncmd:\n  - [ sh, -c, 'echo x >> /var/boots; echo begun; while ! test -e /run/go; do "+
			"sleep 0.05; done; echo ended' ]\n"))
	r.atLast(func() bool { return strings.Contains(r.seen("tsk_a").output["STDOUT"], "begun") })
	r.kill()
	r.run()
	r.text("tsk_l", "touch /run/go")
	done := r.booted("tsk_a")
	require.Equal(t, "SUCCEEDED", done.State, done.message)
	require.Contains(t, resultOf[cloudResult](t, done).Output, "ended")
	require.Equal(t, "x\n", r.text("tsk_m", "cat /var/boots"))
}

func TestFirstBootEndsWithItsTimeOrWhenItIsCanceled(t *testing.T) {
	t.Parallel()
	r := cloudRig(t)
	const hanging = "#cloud-config\nruncmd:\n  - [ sh, -c, 'echo begun; exec sleep 7717' ]\n"
	late := cloudTask("tsk_a", "i-1", hanging)
	late.TimeoutSeconds = 4
	done := r.boot(late)
	require.Equal(t, "TIMED_OUT", done.State)
	canceled := cloudTask("tsk_b", "i-2", hanging)
	r.give(canceled)
	r.atLast(func() bool { return strings.Contains(r.seen("tsk_b").output["STDOUT"], "begun") })
	canceled.CancelRequested = true
	r.push(canceled)
	require.Equal(t, "CANCELED", r.booted("tsk_b").State)
	require.Equal(t, "0\n", r.text("tsk_l", "pgrep -cx sleep || true"))
}

func TestFirstBootNeedsCloudInitAndNamespaces(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		if !r.options.ForceProcess {
			r.text("tsk_rm", "rm -f /usr/bin/cloud-init /usr/local/bin/cloud-init") // the member's alone
		}
		done := r.boot(cloudTask("tsk_a", "i-1", firstBoot))
		require.Equal(t, "FAILED", done.State)
		require.Equal(t, "CLOUD_INIT_MISSING", resultOf[cloudResult](t, done).Code, done.message)
	})
}

// What the node's own first boot left does not concern its members.
func TestMembersDoNotSeeTheFirstBootOfTheirNode(t *testing.T) {
	t.Parallel()
	r := cloudRig(t)
	var stat unix.Stat_t
	if unix.Stat("/var/lib/cloud", &stat) != nil {
		t.Skip("this machine had no first boot")
	}
	require.Equal(t, "absent\n", r.text("tsk_a", "test -e /var/lib/cloud || echo absent"))
}
