package slurm

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Two people and a service account, as the platform gives them with a request.
var (
	alice = adapter.Requester{ID: "usr_alice", Kind: "user", ProjectID: "prj_1",
		Posix: &adapter.PosixIdentity{Name: "alice", UID: 1004, GID: 1004}}
	bob = adapter.Requester{ID: "usr_bob", Kind: "user", ProjectID: "prj_2",
		Posix: &adapter.PosixIdentity{Name: "bob-of-the-longest-names-of-all", UID: 1005, GID: 1005}}
	robot = adapter.Requester{ID: "sa_robot", Kind: "service_account",
		Posix: &adapter.PosixIdentity{Name: "robot", UID: 59_999, GID: 59_999}}
)

// tries runs an action of somebody's.
func (b *bench) tries(who adapter.Requester, action string, input map[string]any) (code int, raw []byte) {
	b.t.Helper()
	text, err := json.Marshal(input)
	require.NoError(b.t, err)
	return b.p.Call(b.base, http.MethodPost, adapter.ActionPath(b.current.Instance.ID, action), adapter.ActionRequest{
		Input: text, IdempotencyKey: "as-" + time.Now().String(), Requester: who,
		Instance: b.current.Instance, Members: b.current.Members, Platform: b.p.Access(),
	}, nil)
}

// does runs an action of somebody's, which must succeed, and decodes its output.
func (b *bench) does(who adapter.Requester, action string, input map[string]any, output any) {
	b.t.Helper()
	code, raw := b.tries(who, action, input)
	require.Equal(b.t, http.StatusOK, code, "%s", raw)
	var result adapter.ActionResult
	require.NoError(b.t, json.Unmarshal(raw, &result))
	require.NoError(b.t, json.Unmarshal(result.Output, output))
}

// denies requires that an action on a job is refused to somebody, and returns the refusal.
func (b *bench) denies(who adapter.Requester, action, job string) (refused adapter.ErrorBody) {
	b.t.Helper()
	return b.deniesInput(who, action, map[string]any{"jobId": job})
}

func (b *bench) deniesInput(who adapter.Requester, action string, input map[string]any) (refused adapter.ErrorBody) {
	b.t.Helper()
	code, raw := b.tries(who, action, input)
	require.Equal(b.t, http.StatusUnprocessableEntity, code, "%s: %s", action, raw)
	require.NoError(b.t, json.Unmarshal(raw, &refused))
	return refused
}

func (b *bench) submits(who adapter.Requester, script string) string {
	b.t.Helper()
	var submitted struct{ JobID string }
	b.does(who, "queue.submit", map[string]any{"script": script}, &submitted)
	return submitted.JobID
}

// listed returns a job as it is now.
func (b *bench) listed(job string) report.Job {
	b.t.Helper()
	var list jobList
	b.does(alice, "queue.list", map[string]any{"jobId": job}, &list)
	return list.Jobs[0]
}

// reads returns all that a job has written, when it has ended.
func (b *bench) reads(who adapter.Requester, action, job, state string) string {
	b.t.Helper()
	b.job(job, state)
	var read part
	b.does(who, action, map[string]any{"jobId": job}, &read)
	return read.Text
}

func TestJobsRunAsTheirPeople(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_people", 1)
	b.current.Members[1].Node.CPUs = 4
	t.Run("in their homes", func(t *testing.T) { jobsRunInHomes(t, b) })
	t.Run("others'", func(t *testing.T) { othersJobsAreTheirs(t, b) })
	t.Run("accounts", func(t *testing.T) { jobsAreChargedToProjects(t, b) })
	t.Run("newcomers", func(t *testing.T) { newMembersKnowEverybody(t, b) })
}

const whoAmI = "#!/bin/sh\nid -un; id -gn; id -u; pwd; echo $HOME; stat -c '%a %U' .; srun id -un\n"

func jobsRunInHomes(t *testing.T, b *bench) {
	require.Equal(t, "alice\nalice\n1004\n/home/alice\n/home/alice\n700 alice\nalice\n",
		b.reads(alice, "job.output", b.submits(alice, whoAmI), "COMPLETED"))
	require.Contains(t, b.reads(robot, "job.output", b.submits(robot, whoAmI), "COMPLETED"), "robot\nrobot\n59999\n")
	name := bob.Posix.Name
	id := b.submits(bob, whoAmI)
	require.Equal(t, name+"\n"+name+"\n1005\n/home/"+name+"\n/home/"+name+"\n700 "+name+"\n"+name+"\n",
		b.reads(bob, "job.output", id, "COMPLETED"))
	require.Equal(t, name, b.job(id, "COMPLETED").User, "the whole name")
	nobody := awaitJob(t, b.p, b.base, b.current, b.submit("#!/bin/sh\nid -un\n", nil), "COMPLETED")
	require.Equal(t, "nobody\n", nobody.Output, "a requester without an account")

	taken := adapter.Requester{ID: "usr_x", Kind: "user", Posix: &adapter.PosixIdentity{Name: "carol", UID: 1004,
		GID: 1004}}
	for want, who := range map[string]adapter.Requester{
		"ACCOUNT_TAKEN": taken,
		adapter.CodeInvalid: {ID: "usr_x", Kind: "user",
			Posix: &adapter.PosixIdentity{Name: "root", UID: 0, GID: 0}},
	} {
		code, raw := b.tries(who, "queue.submit", map[string]any{"script": "#!/bin/sh\n"})
		require.Equal(t, http.StatusUnprocessableEntity, code, "%s", raw)
		require.Contains(t, string(raw), want)
	}
	register := b.on(b.current.Members[0].ID, "cat /var/lib/slurm/people")
	require.Equal(t, "alice 1004 1004 usr_alice\nrobot 59999 59999 sa_robot\n"+name+" 1005 1005 usr_bob\n", register)
}

func othersJobsAreTheirs(t *testing.T, b *bench) {
	id := b.submits(alice, "#!/bin/sh\necho mine; sleep 600\n")
	b.job(id, "RUNNING")
	for _, action := range []string{"queue.cancel", "queue.hold", "queue.requeue", "job.output"} {
		refused := b.denies(bob, action, id)
		require.Equal(t, "JOB_NOT_YOURS", refused.Code, action)
		require.Equal(t, "input.jobId", refused.Path)
		require.Contains(t, refused.Message, "belongs to alice: use "+action+".any")
	}
	var list jobList
	b.does(bob, "queue.list", map[string]any{"jobId": id}, &list)
	require.Empty(t, list.Output, "the queue shows whose jobs there are, and not what they write")
	require.Equal(t, "RUNNING", b.job(id, "RUNNING").State, "nothing came of it")
	b.does(alice, "queue.list", map[string]any{"jobId": id}, &list)
	require.Equal(t, "mine\n", list.Output)
	require.Equal(t, "mine\n", b.reads(bob, "job.output.any", id, "RUNNING"))

	var done struct{ Canceled bool }
	b.does(bob, "queue.requeue.any", map[string]any{"jobId": id}, &done)
	b.does(bob, "queue.hold.any", map[string]any{"jobId": id}, &done)
	require.Contains(t, b.job(id, "PENDING").Reason, "Held")
	require.Equal(t, "JOB_STATE", b.denies(alice, "queue.release", id).Code, "an operator has held it")
	b.does(bob, "queue.release.any", map[string]any{"jobId": id}, &done)
	b.does(bob, "queue.cancel.any", map[string]any{"jobId": id}, &done)
	require.True(t, done.Canceled)
	b.job(id, "CANCELLED")

	id = b.submits(alice, longJob)
	b.does(alice, "queue.hold", map[string]any{"jobId": id}, &done)
	b.does(alice, "queue.cancel", map[string]any{"jobId": id}, &done)
	require.True(t, done.Canceled)
	for _, file := range []string{"/etc/shadow", "/home/" + bob.Posix.Name + "/secret"} {
		b.on(b.current.Members[1].ID, "install -o 1005 -m 0600 /dev/null /home/"+bob.Posix.Name+"/secret")
		id := b.submits(alice, "#!/bin/sh\nln -sf "+file+" slurm-people-$SLURM_JOB_ID.out\n")
		b.job(id, "COMPLETED")
		require.Equal(t, "OUTPUT_UNREADABLE", b.denies(alice, "job.output", id).Code)
	}
}

func jobsAreChargedToProjects(t *testing.T, b *bench) {
	var told struct{ Jobs []report.AccountedJob }
	charged := map[string]string{}
	require.Eventually(t, func() bool {
		b.does(bob, "accounting.jobs", map[string]any{}, &told)
		for _, one := range told.Jobs {
			charged[one.User] = one.Account
		}
		return charged["alice"] == "prj_1" && charged[bob.Posix.Name] == "prj_2" && charged["robot"] == "prj_1" &&
			charged["nobody"] == "jobs"
	}, patience, 200*time.Millisecond, "%v", charged)
	both := alice
	both.ProjectID = "prj_2"
	id := b.submits(both, "#!/bin/sh\n")
	require.Equal(t, "prj_2\n", b.on(b.current.Members[0].ID, "squeue -a -h -t all -j "+id+" -o %a"))
}

// newMembersKnowEverybody adds a worker that no one has used, and recovers one that has lost its accounts.
func newMembersKnowEverybody(t *testing.T, b *bench) {
	b.add(1)
	id := b.submits(alice, "#!/bin/sh\n#SBATCH --nodelist=w1\nid -un; stat -c %U .\n")
	require.Equal(t, "alice\nalice\n", b.reads(alice, "job.output", id, "COMPLETED"))
	require.Equal(t, bob.Posix.Name+"\n", b.on(b.current.Members[2].ID, "id -un 1005"))

	b.on(b.current.Members[2].ID, "sed -i /^alice:/d /etc/passwd /etc/group /etc/shadow; rm -r /home/alice")
	b.run(adapter.MemberRecover, nil, b.current.Members[2].ID)
	id = b.submits(alice, "#!/bin/sh\n#SBATCH --nodelist=w1\nid -un; stat -c %U .\n")
	require.Equal(t, "alice\nalice\n", b.reads(alice, "job.output", id, "COMPLETED"))
}
