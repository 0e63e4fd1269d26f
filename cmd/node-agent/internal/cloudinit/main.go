package cloudinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
)

// Request is what is to be applied.
type Request struct {
	InstanceID string `json:"instanceId"`
	// Hostname is empty for the member's; another one it has been given already, from outside.
	Hostname string `json:"hostname,omitempty"`
	UserData []byte `json:"userData"`
}

// Result is what it came to. Status is cloud-init's word: done or error.
type Result struct {
	// Code is CLOUD_INIT_MISSING or CLOUD_INIT_FAILED when it could not be done or cloud-init says that it failed.
	Code   string   `json:"code,omitempty"`
	Status string   `json:"status"`
	Errors []string `json:"errors"`
	// Stages are those that ran to their end, in their order.
	Stages []string `json:"stages"`
	Output string   `json:"output"`
}

// The files of a run, all in the member.
const (
	seedDir    = "/var/lib/cloud/seed/nocloud"
	configFile = "/etc/cloud/cloud.cfg.d/99_zz_member.cfg"
	outputLog  = "/var/log/cloud-init-output.log"
	recordDir  = "/var/lib/cloud/member"
	recordFile = recordDir + "/result.json"
	lockFile   = recordDir + "/lock"
	runDir     = "/run/cloud-init"
	namedFile  = "/var/lib/cloud/data/set-hostname"
	resultFile = runDir + "/result.json"
	statusFile = runDir + "/status.json"
)

// maxRequest bounds the request, in bytes.
const maxRequest = 1 << 20

// stages are the four of a boot, by what cloud-init calls them in its status.
var stages = []struct {
	name string
	args []string
}{
	{"init-local", []string{"init", "--local"}},
	{"init", []string{"init"}},
	{"modules-config", []string{"modules", "--mode=config"}},
	{"modules-final", []string{"modules", "--mode=final"}},
}

// record is the result of the last run, by which the same instance id again changes nothing.
type record struct {
	InstanceID string `json:"instanceId"`
	Result     Result `json:"result"`
}

// Main is the program; it gives the exit code.
func Main() int {
	result, err := run(os.Stdin, os.Stdout)
	if err != nil {
		result = Result{Code: codeFailed, Status: statusError, Errors: []string{err.Error()}, Stages: []string{}}
	}
	if err := json.NewEncoder(os.Stderr).Encode(result); err != nil || result.Code != "" {
		return 1
	}
	return 0
}

func run(in io.Reader, out io.Writer) (Result, error) {
	var request Request
	if err := json.NewDecoder(io.LimitReader(in, maxRequest)).Decode(&request); err != nil {
		return Result{}, errors.New("the request cannot be read")
	}
	program, err := exec.LookPath("cloud-init")
	if err != nil {
		return Result{Code: codeMissing, Status: statusError,
			Errors: []string{"cloud-init is not installed in the member"}, Stages: []string{}}, nil
	}
	lock, err := takeTurn()
	if err != nil {
		return Result{}, err
	}
	defer lock.Close()
	var last record
	if raw, err := os.ReadFile(recordFile); err == nil && json.Unmarshal(raw, &last) == nil &&
		last.InstanceID == request.InstanceID {
		return last.Result, nil
	}
	if err := prepare(request); err != nil {
		return Result{}, fmt.Errorf("prepare: %w", err)
	}
	if err := boot(program, out); err != nil {
		return Result{}, err
	}
	result, err := readResult()
	if err != nil {
		return Result{}, err
	}
	return result, durable.WriteJSON(recordFile, record{InstanceID: request.InstanceID, Result: result})
}

// takeTurn waits for another run in the member, within the task's time, which the member's init keeps.
func takeTurn() (*os.File, error) {
	if err := os.MkdirAll(recordDir, 0o700); err != nil {
		return nil, fmt.Errorf("create %s: %w", recordDir, err)
	}
	lock, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock cloud-init: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("lock cloud-init: %w", err)
	}
	return lock, nil
}

// prepare writes seed and configuration. It replaces what an earlier run with another id left, and removes the files by
// which cloud-init recognises a boot, as a boot empties /run: with them it trusts what it knew, and takes the host name
// as given.
func prepare(request Request) error {
	if err := errors.Join(os.RemoveAll(recordFile), os.RemoveAll(runDir), os.RemoveAll(namedFile)); err != nil {
		return err
	}
	hostname := request.Hostname
	if hostname == "" {
		var err error
		if hostname, err = os.Hostname(); err != nil {
			return err
		}
	}
	// JSON is YAML
	meta, err := json.Marshal(map[string]string{"instance-id": request.InstanceID, "local-hostname": hostname})
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path    string
		content []byte
		mode    os.FileMode
	}{
		{configFile, []byte(config), 0o644},
		{filepath.Join(seedDir, "meta-data"), meta, 0o600},
		{filepath.Join(seedDir, "user-data"), request.UserData, 0o600},
	} {
		if err := os.MkdirAll(filepath.Dir(file.path), 0o755); err != nil {
			return err
		}
		if err := durable.WriteFile(file.path, file.content, file.mode); err != nil {
			return err
		}
	}
	return nil
}

// boot runs the stages, each to its end whatever the one before came to, as a boot does.
func boot(program string, out io.Writer) error {
	log, err := os.OpenFile(outputLog, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640)
	if err != nil {
		return fmt.Errorf("open %s: %w", outputLog, err)
	}
	defer log.Close()
	follow, err := followFrom(log, out)
	if err != nil {
		return err
	}
	defer follow.stop()
	for _, stage := range stages {
		cmd := exec.Command(program, stage.args...)
		// What it leaves running may print for ever: into the log, never into a pipe that ends with this program.
		cmd.Stdout, cmd.Stderr = log, log
		// The kernel's command line is the node's, and may name a datasource of the node.
		cmd.Env = append(os.Environ(), "DEBUG_PROC_CMDLINE=")
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			return fmt.Errorf("run stage %s: %w", stage.name, err)
		}
	}
	return nil
}
