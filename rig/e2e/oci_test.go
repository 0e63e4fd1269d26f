package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/signing"
)

const notebook = "web-notebook"

// containersUnderTest is an instance whose members are containers.
type containersUnderTest struct {
	t        *testing.T
	ctx      context.Context
	c        *client.Client
	instance string
	homes    map[string]*stack.Node // of members, by where they listen
}

// TestContainersRunOnNodesAndLeaveNothing is one launched app's life: two replicas, a killed process, a third replica,
// another image and back, a drained one, a removed one, a replaced one, and the proof that nothing is left.
func TestContainersRunOnNodesAndLeaveNothing(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	k := &containersUnderTest{t: t, ctx: ctx, c: c}
	started, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.ProjectID, AppSlug: notebook, Version: "1.0.0", Name: "notebooks",
		AllocationIds:   []string{rent(t, ctx, c), rent(t, ctx, c)},
		Components:      []gql.ComponentInput{{Key: "replica", Count: 2}},
		Config:          notebookConfig(t, ctx, "Good evening"),
		DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	k.instance = started.LaunchInstance.Instance.Id
	succeeds(t, ctx, c, started.LaunchInstance.Operation.Id)
	replicas := k.replicas()
	require.Len(t, replicas, 2)
	for id, at := range replicas {
		require.Equal(t, "Good evening from "+id+", build 1\n", k.get(at), "at %s", at)
	}
	k.opensInABrowser()
	k.worksInAMember()
	k.logsIn()
	k.newVersion("2.0.0", "two") // which deprecates the first
	k.comesBack(replicas)
	k.tellsItsLog()
	k.grows(rent(t, ctx, c))
	k.changesAndGoesBack("2.0.0")
	k.shrinks()

	members := memberIDs(t, ctx, c, k.instance)
	require.NotEmpty(t, notebooksOf(t, ctx, members))
	requireProof(t, decommission(t, ctx, c, k.instance), k.present(members))
	requireGone(t, ctx, members)
	require.Empty(t, notebooksOf(t, ctx, members))
}

// dial goes to a member from its own node: of the others only those with a member of its instance know the way to it.
func (k *containersUnderTest) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return k.homes[address].DialContext(ctx, network, address)
}

// replicas are where the members that serve listen.
func (k *containersUnderTest) replicas() map[string]string { return k.servers("http") }

// servers are where the members that serve listen at a port of theirs.
func (k *containersUnderTest) servers(port string) map[string]string {
	k.t.Helper()
	found := make(map[string]string)
	k.homes = make(map[string]*stack.Node)
	for _, member := range membersOf(k.t, k.ctx, k.c, k.instance) {
		var detail struct{ Endpoints map[string]string }
		if member.Status == gql.MemberStatusActive {
			require.NoError(k.t, json.Unmarshal(member.AdapterDetail, &detail))
			found[member.Id] = detail.Endpoints[port]
			k.homes[found[member.Id]] = nodeOf(k.t, member)
		}
	}
	return found
}

// says waits until every address answers with a text.
func (k *containersUnderTest) says(addresses map[string]string, text string) {
	k.t.Helper()
	for _, at := range addresses {
		require.Eventually(k.t, func() bool { return strings.Contains(k.get(at), text) }, 30*time.Second,
			200*time.Millisecond, "%s does not say %q", at, text)
	}
}

// comesBack kills the process of every container of the instance; the agents start them again. Other tests run
// notebooks too.
func (k *containersUnderTest) comesBack(replicas map[string]string) {
	k.t.Helper()
	own := strings.Join(memberIDs(k.t, k.ctx, k.c, k.instance), "|")
	printed := onNodes(k.t, k.ctx, `for f in /proc/[0-9]*; do
		[ "$(cat $f/comm 2>/dev/null)" = web-notebook ] && grep -qE '`+own+`' $f/cgroup || continue
		kill -9 ${f#/proc/} && echo killed
	done`)
	require.Equal(k.t, len(replicas), strings.Count(printed, "killed"))
	k.says(replicas, "Good evening")
}

func (k *containersUnderTest) tellsItsLog() {
	k.t.Helper()
	var read struct {
		Logs []struct{ MemberID, Text string }
	}
	act(k.t, k.ctx, k.c, k.instance, "logs.read", map[string]any{"lines": 50}, &read)
	require.Len(k.t, read.Logs, 2)
	for _, log := range read.Logs {
		require.Equal(k.t, 2, strings.Count(log.Text, "web-notebook listens"), "it was started twice: %s", log.Text)
	}
}

func (k *containersUnderTest) grows(allocation string) {
	k.t.Helper()
	added, err := gql.AddMembers(k.ctx, k.c, gql.AddMembersInput{
		InstanceId: k.instance, ComponentKey: "replica", Count: 1, AllocationIds: []string{allocation},
		DeadlineSeconds: 120,
		IdempotencyKey:  client.NewKey(),
	})
	require.NoError(k.t, err)
	succeeds(k.t, k.ctx, k.c, added.AddMembers.Operation.Id)
	require.Len(k.t, k.replicas(), 3)
	k.says(k.replicas(), "build 1")
}

func (k *containersUnderTest) changesAndGoesBack(version string) {
	k.t.Helper()
	upgraded, err := gql.UpgradeInstance(k.ctx, k.c, gql.UpgradeInstanceInput{
		InstanceId: k.instance, Version: version, DeadlineSeconds: 180, Reason: "end-to-end test",
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	succeeds(k.t, k.ctx, k.c, upgraded.UpgradeInstance.Operation.Id)
	k.says(k.replicas(), "build two")
	back, err := gql.RollbackInstance(k.ctx, k.c, gql.RollbackInstanceInput{
		InstanceId: k.instance, DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	succeeds(k.t, k.ctx, k.c, back.RollbackInstance.Operation.Id)
	require.Len(k.t, k.replicas(), 3)
	k.says(k.replicas(), "Good evening")
	k.says(k.replicas(), "build 1")
}

// shrinks drains one and removes it, and replaces another.
func (k *containersUnderTest) shrinks() {
	k.t.Helper()
	var ids []string
	for id := range k.replicas() {
		ids = append(ids, id)
	}
	at := k.replicas()[ids[0]]
	drained, err := gql.DrainMember(k.ctx, k.c, gql.DrainMemberInput{MemberId: ids[0], DeadlineSeconds: 120,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	succeeds(k.t, k.ctx, k.c, drained.DrainMember.Operation.Id)
	require.Empty(k.t, k.get(at))
	removed, err := gql.RemoveMember(k.ctx, k.c, gql.RemoveMemberInput{MemberId: ids[0], DeadlineSeconds: 120,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	succeeds(k.t, k.ctx, k.c, removed.RemoveMember.Operation.Id)
	replaced, err := gql.ReplaceMember(k.ctx, k.c, gql.ReplaceMemberInput{MemberId: ids[1], DeadlineSeconds: 180,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	succeeds(k.t, k.ctx, k.c, replaced.ReplaceMember.Operation.Id)
	left := k.replicas()
	require.Len(k.t, left, 2)
	require.NotContains(k.t, left, ids[1])
	k.says(left, "build 1")
}

// present drops members that had left before.
func (k *containersUnderTest) present(members []string) (left []string) {
	return (&clusterUnderTest{t: k.t, ctx: k.ctx, c: k.c}).present(members)
}

// program builds the notebook with another build in it.
func (k *containersUnderTest) program(build string) string {
	k.t.Helper()
	program := filepath.Join(k.t.TempDir(), notebook)
	command := exec.CommandContext(k.ctx, "go", "build", "-trimpath", "-ldflags", "-X main.build="+build, "-o", program,
		"../../cmd/oci-launch-controller/testimages/web-notebook")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(k.t, err, "%s", out)
	return program
}

// image builds, pushes and signs an image of the notebook with another build in it.
func (k *containersUnderTest) image(build string) (ref, digest string) {
	k.t.Helper()
	ref, digest, err := shared.PushImage(k.ctx, "apps/"+notebook, k.program(build))
	require.NoError(k.t, err)
	access, err := shared.RegistryPush().Authorization()
	require.NoError(k.t, err)
	text, err := os.ReadFile(shared.SigningKeyFile())
	require.NoError(k.t, err)
	key, err := signing.ParsePrivate(text)
	require.NoError(k.t, err)
	_, err = publish.Registry{User: access.Username, Password: access.Password, PlainHTTP: true}.Sign(k.ctx, ref, key,
		false)
	require.NoError(k.t, err)
	return ref, digest
}

// draft publishes a version of the notebook with another image.
func (k *containersUnderTest) draft(version, ref, digest string) (manifest, artifact string) {
	k.t.Helper()
	published, err := gql.PublishArtifact(k.ctx, shared.Operator, gql.PublishArtifactInput{
		Name: notebook, MediaType: "application/vnd.oci.image.manifest.v1+json", Ref: ref,
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	printed, err := exec.CommandContext(k.ctx, "../../bin/oci-launch-controller", "--print-manifest").Output()
	require.NoError(k.t, err)
	var document map[string]any
	require.NoError(k.t, json.Unmarshal(printed, &document))
	document["version"] = version
	document["artifacts"] = []map[string]string{{"name": "image",
		"mediaType": "application/vnd.oci.image.manifest.v1+json", "ref": ref, "digest": digest}}
	encoded, err := json.Marshal(document)
	require.NoError(k.t, err)
	made, err := gql.PublishManifest(k.ctx, shared.Operator,
		gql.PublishManifestInput{Document: encoded, IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	return made.PublishManifest.Id, published.PublishArtifact.Id
}

// smoke launches a version in the lab and answers how that ended; the instance is torn down again.
func (k *containersUnderTest) smoke(version string) (instance string, ended *gql.OperationDetail) {
	k.t.Helper()
	rented, err := gql.RequestAllocation(k.ctx, shared.Operator, gql.RequestAllocationInput{
		ProjectId: shared.Demo.LabProjectID, Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1,
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	allocation := rented.RequestAllocation.Allocations[0].Id
	launched, err := gql.LaunchInstance(k.ctx, shared.Operator, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.LabProjectID, AppSlug: notebook, Version: version,
		Name:          "smoke-" + strings.ToLower(client.NewKey()[:8]),
		AllocationIds: []string{allocation}, DeadlineSeconds: 120, Smoke: true, Reason: "smoke test",
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	instance = launched.LaunchInstance.Instance.Id
	ended, err = shared.Operator.WaitOperation(k.ctx, launched.LaunchInstance.Operation.Id, nil)
	require.NoError(k.t, err)
	if ended.State == gql.OperationStateSucceeded {
		decommission(k.t, k.ctx, shared.Operator, instance)
	}
	release, err := gql.ReleaseAllocation(k.ctx, shared.Operator,
		gql.ReleaseAllocationInput{AllocationId: allocation, Reason: "smoke test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	succeeds(k.t, k.ctx, shared.Operator, release.ReleaseAllocation.Operation.Id)
	return instance, ended
}

// newVersion publishes a version of the notebook and makes it the active one.
func (k *containersUnderTest) newVersion(version, build string) {
	k.t.Helper()
	ref, digest := k.image(build)
	manifest, artifact := k.draft(version, ref, digest)
	for _, to := range []gql.Stage{gql.StageStaged, gql.StageCanary, gql.StageActive} {
		step := gql.PromoteArtifactInput{ArtifactId: artifact, To: to, Reason: "end-to-end test"}
		if to == gql.StageActive {
			step.Override = "a test"
		}
		_, err := gql.PromoteArtifact(k.ctx, shared.Operator, step)
		require.NoError(k.t, err)
	}
	smoked, ended := k.smoke(version)
	require.Equal(k.t, gql.OperationStateSucceeded, ended.State, "%s: %+v", ended.Message, ended.Error)
	for _, step := range []gql.PromoteManifestInput{{To: gql.StageStaged, SmokeInstanceId: smoked},
		{To: gql.StageCanary, CanaryPercent: new(50)}, {To: gql.StageActive}} {
		step.ManifestId, step.Reason = manifest, "end-to-end test"
		if step.To != gql.StageStaged {
			step.Override = "a test"
		}
		_, err := gql.PromoteManifest(k.ctx, shared.Operator, step)
		require.NoError(k.t, err)
	}
}

func TestBytesThatAreSwappedAfterPublishingNeverRun(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	k := &containersUnderTest{t: t, ctx: ctx, c: c}
	const repository = "swapped"
	dir := t.TempDir()
	_, err := publish.Build(dir, publish.Image{Files: []publish.File{{From: k.program("swapped")}}, User: "65532:65532",
		Platform: "linux/" + runtime.GOARCH})
	require.NoError(t, err)
	pushed, err := publish.Registry{User: registryUser, Password: registryPassword,
		PlainHTTP: true}.PushLayout(ctx, dir, outside.host+"/"+repository+":1")
	require.NoError(t, err)
	source, err := gql.CreateArtifactSource(ctx, shared.Operator, gql.CreateArtifactSourceInput{
		Name: repository, Kind: gql.SourceKindOci, Location: outside.host + "/" + repository,
		SignaturePolicy: gql.SignaturePolicyOptional, IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	_, err = gql.SetSourceCredential(ctx, shared.Operator, gql.SetSourceCredentialInput{
		SourceId: source.CreateArtifactSource.Id, User: registryUser, Secret: registryPassword,
	})
	require.NoError(t, err)
	k.draft("9.0.0", pushed.Ref, pushed.Digest)
	outside.breaks(repository, tampers)

	instance, ended := k.smoke("9.0.0")
	require.Equal(t, gql.OperationStateFailed, ended.State)
	require.NotNil(t, ended.Error)
	require.Contains(t, fmt.Sprint(ended.Error.Code, " ", ended.Error.Message), "DIGEST_MISMATCH")
	requireGone(t, ctx, memberIDs(t, ctx, shared.Operator, instance))
}
