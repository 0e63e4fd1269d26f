package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// maxBoots bounds the first boots that are kept of one member.
const maxBoots = 64

// fetch places the artifact of the task, from n.Artifacts.
func (m *member) fetch(spec adapter.FetchArtifact, n *Nodes) (Outcome, error) {
	if n.Artifacts == nil {
		return Outcome{}, failf("ARTIFACT_UNAVAILABLE", "these nodes have no artifacts")
	}
	files, came, err := n.Artifacts.Fetch(spec)
	if err != nil {
		return Outcome{}, err
	}
	mode := spec.Mode
	if mode == "" {
		mode = "0644"
	}
	for _, file := range files {
		place := adapter.WriteFile{
			Path: path.Join(spec.Path, file.Name), Mode: mode, Owner: spec.Owner, Content: string(file.Data),
			MakeDirs: true,
		}
		if _, err := m.write(place, n); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{
		Result: map[string]any{"digest": came.Digest, "manifest": came.Manifest, "path": came.Path, "bytes": came.Bytes,
			"fetchedBytes": came.FetchedBytes, "parts": came.Parts, "cached": came.Cached},
	}, nil
}

// boot applies user data once for an instance id, in a member with namespaces where cloud-init is installed. Other
// members are directories of the machine, which must not be booted: the boot is noted and what the document requests
// does not happen.
func (m *member) boot(ctx context.Context, spec adapter.CloudInit, n *Nodes) (Outcome, error) {
	if (spec.UserData == "") == (spec.UserDataSealed == "") || spec.InstanceID == "" {
		return Outcome{}, failf("SPEC_INVALID", "userData or userDataSealed, and instanceId, must be given")
	}
	if spec.UserDataSealed != "" {
		opened, err := n.open(spec.UserDataSealed, m.instance)
		if err != nil {
			return Outcome{}, err
		}
		spec.UserData, spec.UserDataSealed = string(opened), ""
	}
	if !strings.HasPrefix(spec.UserData, "#") && !strings.HasPrefix(spec.UserData, "Content-Type:") {
		return Outcome{}, failf("CLOUD_INIT_FAILED", "the user data does not begin with # or Content-Type:")
	}
	if spec.Hostname == "" {
		spec.Hostname, _ = os.Hostname()
	}
	first := m.note(spec)
	if _, err := exec.LookPath("cloud-init"); first && err == nil && m.space != nil {
		return m.reallyBoot(ctx, spec, n)
	}
	return Outcome{
		Result: map[string]any{
			"status": "done", "errors": []string{}, "stages": []string{}, "output": "recorded, but not carried out",
		},
	}, nil
}

// note keeps a first boot; false when the member has had it already.
func (m *member) note(spec adapter.CloudInit) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.boots) - 1
	if (last >= 0 && m.boots[last].InstanceID == spec.InstanceID) || len(m.boots) >= maxBoots {
		return false
	}
	m.boots = append(m.boots, spec)
	return true
}

// reallyBoot runs the stages of a boot.
func (m *member) reallyBoot(ctx context.Context, spec adapter.CloudInit, n *Nodes) (Outcome, error) {
	boot, err := FirstBoot(spec)
	if err != nil {
		return Outcome{}, failf("CLOUD_INIT_FAILED", "%w", err)
	}
	ran, err := m.run(ctx, boot, n)
	if err != nil {
		return ran, failf("CLOUD_INIT_FAILED", "%w: %s", err, ran.Stderr)
	}
	result, err := BootResult(ran.Stdout, ran.Stderr)
	if err != nil {
		return Outcome{Result: result}, failf("CLOUD_INIT_FAILED", "%w", err)
	}
	return Outcome{Result: result}, nil
}

// Boots returns the first boots that were requested in a member, in their order and with their
// documents open. Those of members without namespaces were noted and not carried out.
func (n *Nodes) Boots(memberID string) []adapter.CloudInit {
	n.mu.Lock()
	m, ok := n.members[memberID]
	n.mu.Unlock()
	if !ok {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]adapter.CloudInit(nil), m.boots...)
}
