package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// booted is a first boot of a member and its result.
type booted struct {
	spec   adapter.CloudInit
	result map[string]any
	err    error
}

// fetch places the artifact of the task, from the artifacts that the test has put there.
func (r *runner) fetch(ctx context.Context, m *member, spec adapter.FetchArtifact) (map[string]any, error) {
	files, came, err := r.artifacts.Fetch(spec)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		place := adapter.WriteFile{
			Path:     path.Join(spec.Path, file.Name),
			Mode:     spec.Mode,
			Owner:    spec.Owner,
			Content:  string(file.Data),
			MakeDirs: true,
		}
		if err := r.write(ctx, m, place); err != nil {
			return nil, err
		}
	}
	return map[string]any{"digest": came.Digest, "manifest": came.Manifest, "path": came.Path, "bytes": came.Bytes,
		"fetchedBytes": came.FetchedBytes, "parts": came.Parts, "cached": came.Cached}, nil
}

// boot applies user data in a member, once for an instance id. It is really applied where the
// member has namespaces and cloud-init is installed; anywhere else it would change this machine,
// and is only noted.
func (r *runner) boot(ctx context.Context, m *member, spec adapter.CloudInit) (map[string]any, error) {
	if spec.UserDataSealed != "" {
		opened, err := r.open(spec.UserDataSealed)
		if err != nil {
			return nil, err
		}
		spec.UserData, spec.UserDataSealed = string(opened), ""
	}
	if spec.UserData == "" || spec.InstanceID == "" {
		return nil, errors.New("userData or userDataSealed, and instanceId, must be given")
	}
	m.booting.Lock()
	defer m.booting.Unlock()
	if last := len(m.boots) - 1; last >= 0 && m.boots[last].spec.InstanceID == spec.InstanceID {
		return m.boots[last].result, m.boots[last].err
	}
	done := booted{
		spec: spec,
		result: map[string]any{
			"status": "done",
			"errors": []string{},
			"stages": []string{},
			"output": "recorded, but not carried out",
		},
	}
	if _, err := exec.LookPath("cloud-init"); err == nil && m.init != nil {
		done.result, done.err = m.cloudInit(ctx, spec)
	}
	m.boots = append(m.boots, done)
	return done.result, done.err
}

// cloudInit runs the stages of a boot and reads from cloud-init's result how they went.
func (m *member) cloudInit(ctx context.Context, spec adapter.CloudInit) (map[string]any, error) {
	boot, err := sandbox.FirstBoot(spec)
	if err != nil {
		return nil, err
	}
	ran, err := m.command(ctx, boot)
	if err != nil {
		return nil, fmt.Errorf("cloud-init: %w: %v", err, ran["stderr"])
	}
	stdout, _ := ran["stdout"].(string)
	stderr, _ := ran["stderr"].(string)
	return sandbox.BootResult(stdout, stderr)
}

// Boots returns the first boots that were requested in a member, in their order and with their
// documents open. Those that were only noted, without namespaces or cloud-init, are among them.
func (p *Platform) Boots(memberID string) (specs []adapter.CloudInit) {
	p.t.Helper()
	p.nodes.runner.mu.Lock()
	m, ok := p.nodes.runner.members[memberID]
	p.nodes.runner.mu.Unlock()
	if !ok {
		return nil
	}
	m.booting.Lock()
	defer m.booting.Unlock()
	for _, boot := range m.boots {
		specs = append(specs, boot.spec)
	}
	return specs
}
