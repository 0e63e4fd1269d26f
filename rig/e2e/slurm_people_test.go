package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// person is somebody who works in a cluster by the command line alone.
type person struct {
	t     *testing.T
	ctx   context.Context
	token string
}

// invite makes a person who may use the queues of a project's apps.
func invite(t *testing.T, ctx context.Context, name, project string) *person {
	t.Helper()
	made, err := gql.CreateUser(ctx, shared.Operator, gql.CreateUserInput{TenantId: shared.Demo.TenantID,
		Email: name + "@demo.local", DisplayName: name, IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	_, err = gql.GrantRole(ctx, shared.Operator, gql.GrantRoleInput{SubjectId: made.CreateUser.Id,
		Role: "project_member", ProjectId: project, Reason: "end-to-end test"})
	require.NoError(t, err)
	return &person{t, ctx, tokenOf(t, ctx, made.CreateUser.Id)}
}

// runs runs the command line as the person.
func (p *person) runs(args ...string) string {
	p.t.Helper()
	said, complaint, code := appctlAs(p.t, p.ctx, p.token, args...)
	require.Zero(p.t, code, "%v: %s", args, complaint)
	return strings.ReplaceAll(said, "\r", "")
}

// refused runs the command line as the person, requires that it fails, and returns what it complains of.
func (p *person) refused(args ...string) string {
	p.t.Helper()
	said, complaint, code := appctlAs(p.t, p.ctx, p.token, args...)
	require.NotZero(p.t, code, "%v: %s", args, said)
	return complaint
}

// says runs a command in the cluster's login by ssh.
func (p *person) says(command string) string {
	p.t.Helper()
	return p.runs("ssh", "slurm-people", "--", command)
}

// submits submits a script at the login.
func (p *person) submits(script, options string) (job string) {
	p.t.Helper()
	return strings.TrimSpace(p.says(`printf '` + script + `' | sbatch --parsable ` + options))
}

// reads waits until what a job of the person's writes has a text.
func (p *person) reads(job, text string) {
	p.t.Helper()
	file := output(job)
	require.Eventually(p.t, func() bool { return strings.Contains(p.says("cat "+file+" 2> /dev/null || true"), text) },
		time.Minute, 500*time.Millisecond, "%s never had %q", file, text)
}

// output is the file that a job writes in its owner's home, as sbatch has it.
func output(job string) string { return "slurm-" + job + ".out" }

// TestPeopleShareASlurmCluster is a cluster of two people of a project, who have homes and one GPU for each job, and
// nothing to say over each other's; whose controller is lost with its node; and of which a third one, of another
// project, finds nothing.
func TestPeopleShareASlurmCluster(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	home, state := makeVolume(t, ctx, "people-home"), makeVolume(t, ctx, "people-state")
	first, second, spare := rentNode(t, ctx, c), rentNode(t, ctx, c), rentNode(t, ctx, c)
	started, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.ProjectID, AppSlug: "slurm", Name: "slurm-people",
		AllocationIds: []string{first, second},
		Components: []gql.ComponentInput{{Key: "controller", Count: 1, AllocationIds: []string{first}},
			{Key: "worker", Count: 1, AllocationIds: []string{second}},
			{Key: "login", Count: 1, AllocationIds: []string{second}}},
		Volumes:         []gql.VolumeUseInput{{Slot: "home", VolumeId: home}, {Slot: "state", VolumeId: state}},
		DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	k := &clusterUnderTest{t: t, ctx: ctx, c: c, instance: started.LaunchInstance.Instance.Id}
	k.succeeds(started.LaunchInstance.Operation)

	ada, bea := invite(t, ctx, "ada", shared.Demo.ProjectID), invite(t, ctx, "bea", shared.Demo.ProjectID)
	require.Equal(t, "ada\n", ada.says("id -un"))
	require.Equal(t, "bea\n", bea.says("id -un"))
	shareAFolder(ada, bea)
	ada.worksByFiles()

	const onGPU = `#!/bin/sh\necho gpu=$SLURM_JOB_GPUS of $SLURM_GPUS_ON_NODE\n` +
		`until test -e go-on; do sleep 0.2; done\necho done\n`
	const oneGPU = "--gres=gpu:1 --cpus-per-task=1 --mem=64 --job-name="
	jobs := []string{ada.submits(onGPU, oneGPU+"adas"), bea.submits(onGPU, oneGPU+"beas")}
	k.long = jobs[0]
	ada.reads(jobs[0], "of 1")
	bea.reads(jobs[1], "of 1")
	require.NotEqual(t, ada.says("cat "+output(jobs[0])), bea.says("cat "+output(jobs[1])), "each has a GPU of its own")
	k.began = k.job(k.long, "RUNNING").StartedAt
	noneTouchesAnothers(k, ada, bea, jobs)
	strangerFindsNothing(k, invite(t, ctx, "cyd", shared.Demo.LabProjectID), jobs[0])

	k.losesItsControllersNode(spare)
	ada.says("touch go-on")
	k.job(jobs[0], "COMPLETED")
	ada.reads(jobs[0], "done")
	after := bea.submits(`#!/bin/sh\necho after\n`, oneGPU+"after")
	k.job(after, "COMPLETED")
	bea.reads(after, "after")
	require.NotContains(t, jobs, after, "the queue goes on where it was")
	bea.says("scancel " + jobs[1])
	k.job(jobs[1], "CANCELLED")
	require.Contains(t, bea.says("sacct -X -n -P -a -o JobID,User,State -j "+strings.Join(jobs, ",")),
		jobs[0]+"|ada|COMPLETED")

	decommission(t, ctx, c, k.instance)
	require.DirExists(t, folderOf(home)+"/ada", "homes outlast the cluster")
}

// shareAFolder has one person open a folder of the home to others, and the other write there.
func shareAFolder(ada, bea *person) {
	ada.t.Helper()
	require.Contains(ada.t, bea.says("ls /home/ada 2>&1 || true"), "Permission denied", "homes are their owners'")
	ada.says("chmod 711 . && mkdir together && chmod 1777 together && echo from ada > together/ada")
	bea.says("cat /home/ada/together/ada && echo from bea > /home/ada/together/bea")
	require.Equal(ada.t, "from bea\nbea\n", ada.says("cat together/bea && stat -c %U together/bea"))
	require.Equal(ada.t, "from bea\n", ada.says("srun --mem=64 cat together/bea"), "a worker has it too")
}

// here returns what runs a program of this machine as the person, with a configuration of ssh that appctl has printed.
func (p *person) here(dir string) func(program string, args ...string) string {
	p.t.Helper()
	runs := func(program string, args ...string) string {
		p.t.Helper()
		command := exec.CommandContext(p.ctx, program, args...)
		command.Env = append(os.Environ(), "APPCTL_SERVER="+shared.URL, "APPCTL_TOKEN="+p.token,
			"APPCTL_PROJECT="+shared.Demo.ProjectID, "XDG_CONFIG_HOME="+dir)
		var out, problems bytes.Buffer
		command.Stdout, command.Stderr = &out, &problems
		require.NoError(p.t, command.Run(), "%s %v: %s%s", program, args, out.String(), problems.String())
		return strings.ReplaceAll(out.String(), "\r", "")
	}
	config := filepath.Join(dir, "config")
	printed := runs("../../bin/appctl", "ssh-config", "slurm-people", "--reason", "copy")
	require.NoError(p.t, os.WriteFile(config, []byte(printed), 0o600))
	return func(program string, args ...string) string {
		p.t.Helper()
		return runs(program, append([]string{"-F", config}, args...)...)
	}
}

// worksByFiles copies a script in by this machine's scp, has it run, and copies out what it has written: as on any
// cluster, without a command of the platform's.
func (p *person) worksByFiles() {
	p.t.Helper()
	dir := p.t.TempDir()
	here, script := p.here(dir), filepath.Join(dir, "analyse.sh")
	require.NoError(p.t, os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH --output=results/%x.txt\n"+
		"#SBATCH --error=results/%x.errors\necho result of $(id -un)\necho warning >&2\n"), 0o600))
	here("ssh", "slurm-people", "mkdir results")
	here("scp", script, "slurm-people:analyse.sh")
	job := strings.TrimSpace(here("ssh", "slurm-people", "sbatch --mem=64 --parsable --wait analyse.sh"))
	here("scp", "-r", "slurm-people:results", dir)
	result, err := os.ReadFile(filepath.Join(dir, "results", "analyse.sh.txt"))
	require.NoError(p.t, err)
	require.Regexp(p.t, `^result of [a-z]+\n$`, string(result))
	for stream, text := range map[string]string{"output": string(result), "errors": "warning"} {
		require.Contains(p.t, p.runs("action", "run", "slurm-people", "job.output", "--set", "jobId="+job,
			"--set", "stream="+stream, "-o", "json"), strings.TrimSpace(text), "Slurm says where it is")
	}
	require.Contains(p.t, here("ssh", "-tt", "slurm-people", "srun --mem=64 --pty tty"), "/dev/pts/")
	require.Eventually(p.t, func() bool {
		return strings.Contains(here("ssh", "slurm-people", "sacct -X -n -P -o JobID,JobName,State -j "+job),
			job+"|analyse.sh|COMPLETED")
	}, time.Minute, time.Second, "the accounts have it")
}

// noneTouchesAnothers requires that no one ends or reads another's job, and that everybody reads their own as it runs.
func noneTouchesAnothers(k *clusterUnderTest, ada, bea *person, jobs []string) {
	k.t.Helper()
	for _, one := range []struct {
		who    *person
		theirs string
	}{{ada, jobs[1]}, {bea, jobs[0]}} {
		require.Contains(k.t, one.who.says("scancel "+one.theirs+" 2>&1 || true"), "Access/permission denied")
		for _, action := range []string{"queue.cancel", "job.output"} {
			complaint := one.who.refused("action", "run", "slurm-people", action, "--yes", "--set", "jobId="+one.theirs)
			require.Contains(k.t, complaint, "JOB_NOT_YOURS", action)
			require.Contains(k.t, complaint, "input.jobId", action)
			require.NotContains(k.t, complaint, "input.input", action)
		}
		k.job(one.theirs, "RUNNING")
	}
	var printed struct{ Text, State string }
	said := ada.runs("action", "run", "slurm-people", "job.output", "--input", `{"jobId":"`+jobs[0]+`"}`, "-o", "json")
	require.NoError(k.t, json.Unmarshal([]byte(said), &printed), said)
	require.Contains(k.t, said, "of 1")
	require.Contains(k.t, said, "RUNNING", "it is read as it runs")
}

// strangerFindsNothing requires that a person of another project sees nothing of what exists.
func strangerFindsNothing(k *clusterUnderTest, cyd *person, job string) {
	k.t.Helper()
	for _, command := range [][]string{
		{"ssh", k.instance, "--", "id"}, {"instances", "show", k.instance}, {"members", "list", k.instance},
		{"action", "run", k.instance, "job.output", "--input", `{"jobId":"` + job + `"}`},
		{"ssh", "slurm-people", "--", "id"}, {"volumes", "show", "people-home"},
	} {
		complaint := cyd.refused(append([]string{"--project", shared.Demo.LabProjectID}, command...)...)
		require.Contains(k.t, complaint, "NOT_FOUND", "%v", command)
	}
	require.NotContains(k.t, cyd.runs("volumes", "list", "--project", shared.Demo.LabProjectID), "people-")
	require.NotContains(k.t, cyd.runs("instances", "list", "--project", shared.Demo.LabProjectID), "slurm-people")
}

// losesItsControllersNode kills the node of the controller, which is replaced on another one, over the same files. The
// node comes back, and nothing is left there of the controller that it had.
func (k *clusterUnderTest) losesItsControllersNode(spare string) {
	k.t.Helper()
	lost := k.controller()
	node := k.node(lost)
	require.NoError(k.t, node.Kill())
	require.Eventually(k.t, func() bool { return k.isOffline(lost.Node.Id) }, 90*time.Second, 200*time.Millisecond,
		"the platform does not notice that a node is gone")
	replaced, err := gql.ReplaceMember(k.ctx, k.c, gql.ReplaceMemberInput{MemberId: lost.Id, AllocationId: spare,
		Force: true, DeadlineSeconds: 120, Reason: "its node is gone", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.succeeds(replaced.ReplaceMember.Operation)
	k.untouched()
	require.NoError(k.t, shared.ReviveNode(k.ctx, node.Name()))
	require.Eventually(k.t, func() bool { return len(k.orphans()) == 0 }, 90*time.Second, 300*time.Millisecond,
		"the node that came back is not cleaned")
}
