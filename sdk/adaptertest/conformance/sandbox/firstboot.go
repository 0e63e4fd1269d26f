package sandbox

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

//go:embed firstboot.sh
var firstBootScript string

// firstBootConfig has cloud-init ask nothing of the network and change nothing but the member.
const firstBootConfig = `datasource_list: [ NoCloud, None ]
network: { config: disabled }
users: []
cloud_init_modules: [ bootcmd, write_files, users_groups ]
cloud_config_modules: [ runcmd ]
cloud_final_modules: [ write_files_deferred, scripts_per_instance, scripts_user, final_message ]
`

// FirstBoot returns the command that applies user data in a member with namespaces; its document is open.
func FirstBoot(spec adapter.CloudInit) (nodetask.Run, error) {
	// JSON is YAML
	meta, err := json.Marshal(map[string]string{"instance-id": spec.InstanceID, "local-hostname": spec.Hostname})
	if err != nil {
		return nodetask.Run{}, err
	}
	return nodetask.Run{
		Command: []string{"sh", "-c", firstBootScript, "cloud-init", string(meta), firstBootConfig},
		Stdin:   spec.UserData,
	}, nil
}

// BootResult reads how a first boot went from what its command printed; the error is that of a boot with errors.
func BootResult(stdout, stderr string) (map[string]any, error) {
	var said struct {
		V1 struct{ Errors []string }
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(stdout))).Decode(&said); err != nil {
		return nil, fmt.Errorf("cloud-init left no result: %w", err)
	}
	result := map[string]any{"status": "done", "errors": append([]string{}, said.V1.Errors...), "output": stderr,
		"stages": []string{"init-local", "init", "modules-config", "modules-final"}}
	if len(said.V1.Errors) > 0 {
		result["status"] = "error"
		return result, fmt.Errorf("cloud-init: %s", strings.Join(said.V1.Errors, "; "))
	}
	return result, nil
}
