package oci

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// quick bounds a task that a healthy node does at once.
	quick = 20 * time.Second
	// fetchTime bounds one artifact on its way to a node, and bootTime the making of its container.
	fetchTime = 30 * time.Minute
	bootTime  = 10 * time.Minute
	// askTime bounds the poll of one member: the platform waits for the answer about the whole instance.
	askTime = 8 * time.Second
	// lastTime bounds the last read of a member's usage before its containers stop: only the operation waits, and what
	// is not read is in no usage record.
	lastTime = time.Minute
)

func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "oci"}, args...)
}

// verb runs a verb of the script. In a member where nothing was ever written nothing can run either.
func verb(args ...string) adapter.RunCommand {
	return adapter.RunCommand{Command: shell(`exec sh "$GPUAAS_MEMBER_ROOT`+scriptPath+`" "$@"`, args...)}
}

// tidy is verb, but a member without the script has nothing to tidy.
func tidy(args ...string) adapter.RunCommand {
	return adapter.RunCommand{Command: shell(`f="$GPUAAS_MEMBER_ROOT`+scriptPath+
		`"; test -f "$f" || exit 0; exec sh "$f" "$@"`, args...)}
}

// node is one member during an operation. The prefix keeps the steps of two changes distinct.
type node struct {
	run    *adapter.Run
	member adapter.Member
	prefix string
}

func (n node) do(ctx context.Context, step string, task adapter.NodeTask,
	options ...adapter.TaskOption) (adapter.TaskResult, error) {
	return n.run.Do(ctx, n.member, n.prefix+step, task, options...)
}

// install brings the release of the instance to the member, without starting it.
func (n node) install(ctx context.Context) (*release, error) {
	ports, err := n.ports(ctx)
	if err != nil {
		return nil, err
	}
	p, err := profileOf(n.run.Instance())
	if err != nil {
		return nil, err
	}
	image, _ := n.run.Instance().Artifact(p.Image)
	manifest, err := n.fetch(ctx, "image", image.Digest, top+"layouts/"+hexOf(image.Digest), adapter.AsOCILayout)
	if err != nil {
		return nil, err
	}
	r, err := renderRelease(n.run.Instance(), n.member, ports, manifest)
	if err != nil {
		return nil, err
	}
	for i, held := range r.fetched() {
		if _, err := n.fetch(ctx, fmt.Sprintf("artifact-%d", i), held.artifact.Digest, held.source(),
			adapter.AsFiles); err != nil {
			return nil, err
		}
	}
	return r, n.boot(ctx, r)
}

// ports requests a free port of the node for each port of the profile. A member keeps its ports for life.
func (n node) ports(ctx context.Context) (map[string]int, error) {
	p, err := profileOf(n.run.Instance())
	if err != nil || len(p.Ports) == 0 {
		return nil, err
	}
	script, err := templates.ReadFile("templates/oci.sh")
	if err != nil {
		return nil, err
	}
	// Members that share their node's network and ask at the same moment begin at different ports.
	rank := 0
	if n.member.Address == "" {
		rank = slices.IndexFunc(neighbours(n.run.Of(component), n.member), func(m adapter.Member) bool {
			return m.ID == n.member.ID
		})
	}
	ask := adapter.RunCommand{
		Command: []string{"sh", "-s", "ports"}, Stdin: string(script),
		Env: []adapter.EnvVar{{Name: "START", Value: strconv.Itoa(max(rank, 0))}},
	}
	for _, port := range p.Ports {
		ask.Command = append(ask.Command, port.Name+"="+strconv.Itoa(port.Port))
	}
	result, err := n.do(ctx, "ports", ask, adapter.Within(quick))
	if err != nil {
		return nil, err
	}
	got := make(map[string]int)
	for key, value := range pairs(result.Stdout) {
		if got[key], err = strconv.Atoi(value); err != nil {
			return nil, fmt.Errorf("the ports of %s cannot be read: %w", name(n.member), err)
		}
	}
	return got, nil
}

// neighbours are the members on the same node, in the order of their numbers.
func neighbours(all []adapter.Member, of adapter.Member) []adapter.Member {
	return slices.DeleteFunc(slices.Clone(all), func(m adapter.Member) bool { return m.Node.ID != of.Node.ID })
}

// fetch brings an artifact to the member, and answers the digest of the manifest that was placed. What the node says of
// a failure is the operation's own.
func (n node) fetch(ctx context.Context, step, digest, path, as string) (manifest string, err error) {
	result, err := n.run.Try(ctx, n.member, n.prefix+step, adapter.FetchArtifact{Digest: digest, Path: path, As: as},
		adapter.Within(fetchTime))
	if err != nil {
		return "", err
	}
	fetched, _ := result.Fetched()
	return cmp.Or(fetched.Manifest, digest), n.failed(result, "fetching "+digest)
}

// boot has cloud-init write the release down and make its container.
func (n node) boot(ctx context.Context, r *release) error {
	document, err := r.render()
	if err != nil {
		return err
	}
	d := n.run.Dispatch()
	sealed, err := adapter.Seal(n.member.Node.SealingKey, d.Instance.ID, []byte(document))
	if err != nil {
		return err
	}
	// Another operation is another boot: it may find the member in whatever state.
	sum := sha256.Sum256([]byte(fmt.Sprint(d.OperationID, " ", d.Attempt, " ", n.prefix, " ", document)))
	boot := adapter.CloudInit{UserDataSealed: sealed, InstanceID: "i-" + hex.EncodeToString(sum[:12])}
	result, err := n.run.Try(ctx, n.member, n.prefix+"boot", boot, adapter.Within(bootTime))
	if err != nil {
		return err
	}
	if ran, ok := result.CloudInit(); ok && result.State != adapter.TaskSucceeded {
		result.Message += ": " + strings.Join(ran.Errors, "; ") + " " + lastLines(ran.Output, 4)
	}
	return n.failed(result, "creating the container")
}

// lasting are failures of a node that are the same the next time.
var lasting = []string{"DIGEST_MISMATCH", "ARTIFACT_QUARANTINED", "CLOUD_INIT_MISSING"}

// failed makes a failure of a task that did not succeed, by the node's own code where it gave one.
func (n node) failed(result adapter.TaskResult, what string) error {
	if result.State == adapter.TaskSucceeded {
		return nil
	}
	var said struct{ Code string }
	if json.Unmarshal(result.Raw, &said) != nil || said.Code == "" {
		said.Code = adapter.CodeNodeTask
	}
	return adapter.Fail(said.Code, adapter.OwnerNode, !slices.Contains(lasting, said.Code),
		"%s on %s ended %s: %s", what, name(n.member), result.State, result.Message)
}

// begin stops what runs, starts the release and waits until it is well.
func (n node) begin(ctx context.Context, start adapter.StartProcess, releaseName string, health *Health) error {
	if health == nil {
		health = &Health{}
	}
	well := adapter.Probe{
		Exec: &adapter.ExecProbe{Command: verb("ready", releaseName).Command}, Attempts: or(health.Attempts, 60),
		IntervalSeconds: float64(or(health.IntervalSeconds, 1)), TimeoutSeconds: or(health.TimeoutSeconds, 5) + 5,
	}
	longest := time.Duration(well.Attempts) * (time.Duration(well.TimeoutSeconds)*time.Second +
		time.Duration(well.IntervalSeconds*float64(time.Second)))
	if _, err := n.do(ctx, "stop", adapter.StopProcess{Name: process}, adapter.Within(stopTime)); err != nil {
		return err
	}
	if _, err := n.do(ctx, "start", start, adapter.Within(quick)); err != nil {
		return err
	}
	_, err := n.do(ctx, "well", well, adapter.Within(min(longest, time.Hour)))
	if err == nil {
		_, err = n.do(ctx, "use", verb("use", releaseName), adapter.Within(quick))
	}
	return err
}

// stopTime bounds a stop: a container's grace, and then some.
const stopTime = (graceSeconds + 20) * time.Second

// previous returns how the release in use was started; ok is false when that cannot be read.
func (n node) previous(ctx context.Context) (start adapter.StartProcess, ok bool) {
	result, err := n.run.Look(ctx, n.member, n.prefix+"started", verb("started"), adapter.Within(quick))
	if err != nil || result.State != adapter.TaskSucceeded {
		return start, false
	}
	return start, json.Unmarshal([]byte(result.Stdout), &start) == nil && start.Name == process
}

// releaseOf is the release that a process runs: the last word of its command.
func releaseOf(start adapter.StartProcess) string { return start.Command[len(start.Command)-1] }

// detail is what a person reads of a member: its image, where it listens, and what the node does not enforce.
func (n node) detail(ctx context.Context, r *release) map[string]any {
	out := map[string]any{"name": name(n.member), "node": n.member.Node.Name, "image": r.image.Digest,
		"release": r.Name}
	endpoints := make(map[string]string)
	for _, port := range slices.Sorted(maps.Keys(r.ports)) {
		endpoints[port] = net.JoinHostPort(n.member.Host(), strconv.Itoa(r.ports[port]))
	}
	out["endpoints"] = endpoints
	result, err := n.run.Look(ctx, n.member, n.prefix+"facts", verb("facts", r.Name), adapter.Within(quick))
	if err != nil || result.State != adapter.TaskSucceeded {
		return out
	}
	facts := pairs(result.Stdout)
	wanted := r.profile.Resources
	if wanted.MemoryMiB > 0 || wanted.CPUs > 0 {
		out["limits"] = facts["limits"]
		if facts["limits"] == "none" {
			out["limits"] = "not enforced: only the member's share of the node limits what runs in the member"
		}
	}
	if wanted.GPUs > 0 {
		out["gpus"] = map[string]any{"count": wanted.GPUs, "devices": facts["devices"],
			"simulated": facts["devices"] == "0"}
	}
	return out
}

// pairs reads lines of name=value.
func pairs(text string) map[string]string {
	out := make(map[string]string)
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok {
			out[key] = value
		}
	}
	return out
}

// lastLines is the end of a text, on one line.
func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], " | ")
}
