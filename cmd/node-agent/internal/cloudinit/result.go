package cloudinit

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	codeMissing = wire.CodeCloudInitMissing
	codeFailed  = wire.CodeCloudInitFailed
	statusDone  = "done"
	statusError = "error"
	// maxErrors and maxError bound the errors in a result: how many, and the bytes of each.
	maxErrors = 50
	maxError  = 1000
)

// config is the configuration of the member's cloud-init beyond the distribution's own. Its lists replace those of the
// distribution.
const config = `datasource_list: [ NoCloud, None ]
datasource:
  NoCloud: { fs_label: null }
network: { config: disabled }
output: { all: '>> ` + outputLog + `' }
users: {}
apt: { preserve_sources_list: true }
cloud_init_modules: [ bootcmd, write_files, set_hostname, update_hostname, update_etc_hosts, ca_certs, users_groups ]
cloud_config_modules: [ set_passwords, timezone, apt_configure, runcmd ]
cloud_final_modules: [ package_update_upgrade_install, write_files_deferred, scripts_per_once, scripts_per_boot, scripts_per_instance, scripts_user, final_message ]
`

// readResult reads what cloud-init says of itself.
func readResult() (Result, error) {
	var said struct {
		V1 struct {
			Errors []string `json:"errors"`
		} `json:"v1"`
	}
	if err := readJSON(resultFile, &said); err != nil {
		return Result{}, fmt.Errorf("cloud-init left no result: %w", err)
	}
	var status struct {
		V1 map[string]json.RawMessage `json:"v1"`
	}
	if err := readJSON(statusFile, &status); err != nil {
		return Result{}, fmt.Errorf("cloud-init left no status: %w", err)
	}
	result := Result{Status: statusDone, Errors: []string{}, Stages: []string{}}
	for _, stage := range stages {
		var one struct {
			Finished float64 `json:"finished"`
		}
		if json.Unmarshal(status.V1[stage.name], &one) == nil && one.Finished > 0 {
			result.Stages = append(result.Stages, stage.name)
		}
	}
	for _, complaint := range said.V1.Errors[:min(len(said.V1.Errors), maxErrors)] {
		result.Errors = append(result.Errors, text.Head(text.Clean([]byte(complaint)), maxError))
	}
	if len(result.Errors) > 0 || len(result.Stages) < len(stages) {
		result.Code, result.Status = codeFailed, statusError
	}
	return result, nil
}

func readJSON(path string, into any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
