package adaptertest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/nodetask"
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

// cloudInitScript runs cloud-init in a member: the document comes by standard input, metadata and
// configuration as arguments. It prints cloud-init's own result.
//
//go:embed cloudinit.sh
var cloudInitScript string

// cloudInitConfig limits cloud-init to the parts that a member has of a machine. Its lists replace
// those of the distribution.
const cloudInitConfig = `datasource_list: [ NoCloud, None ]
network: { config: disabled }
users: []
cloud_init_modules: [ bootcmd, write_files, users_groups ]
cloud_config_modules: [ runcmd ]
cloud_final_modules: [ write_files_deferred, scripts_per_instance, scripts_user, final_message ]
`

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
			"output": "noted, and not carried out",
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
	meta, err := json.Marshal(map[string]string{
		"instance-id": spec.InstanceID, "local-hostname": spec.Hostname,
	}) // JSON is YAML
	if err != nil {
		return nil, err
	}
	ran, err := m.command(
		ctx,
		nodetask.Run{
			Command: []string{"sh", "-c", cloudInitScript, "cloud-init", string(meta), cloudInitConfig},
			Stdin:   spec.UserData,
		},
	)
	if err != nil {
		return nil, fmt.Errorf("cloud-init: %w: %v", err, ran["stderr"])
	}
	var said struct {
		V1 struct{ Errors []string }
	}
	text, _ := ran["stdout"].(string)
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&said); err != nil {
		return nil, fmt.Errorf("cloud-init left no result: %w", err)
	}
	result := map[string]any{"status": "done", "errors": append([]string{}, said.V1.Errors...), "output": ran["stderr"],
		"stages": []string{"init-local", "init", "modules-config", "modules-final"}}
	if len(said.V1.Errors) > 0 {
		result["status"] = "error"
		return result, fmt.Errorf("cloud-init: %s", strings.Join(said.V1.Errors, "; "))
	}
	return result, nil
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
