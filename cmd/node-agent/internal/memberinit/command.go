package memberinit

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/accounts"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/program"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// DefaultPath is PATH for commands that bring none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// prepared is a command with everything resolved inside the member.
type prepared struct {
	path       string
	args       []string
	dir        string
	env        []string
	credential *syscall.Credential
}

// prepare resolves user, environment, directory and program of a command. Its errors name the field.
func (s Settings) prepare(command, env []string, workDir, user string) (prepared, error) {
	if len(command) == 0 || command[0] == "" {
		return prepared{}, wire.Errorf(wire.CodeSpecInvalid, "command: must name a program")
	}
	credential, who, err := s.accounts().Credential(user)
	if err != nil {
		return prepared{}, err
	}
	dir, err := s.workDir(workDir)
	if err != nil {
		return prepared{}, err
	}
	full := s.environment(who, env)
	path, err := program.Find(s.shadowed(command[0]), dir, program.ValueOf(full, "PATH"))
	return prepared{path: path, args: command, dir: dir, env: full, credential: credential}, err
}

// prepareRun prepares a run's command, or the builtin part of this program that the run names.
func (s Settings) prepareRun(request wire.Run) (prepared, error) {
	switch {
	case request.Builtin == "":
		return s.prepare(request.Command, request.Env, request.WorkDir, request.User)
	case request.Builtin != wire.BuiltinCloudInit:
		return prepared{}, wire.Errorf(wire.CodeProtocolUnknown, "builtin %q is not known", request.Builtin)
	case s.Mode != ModeContainer:
		return prepared{}, wire.Errorf(wire.CodeCloudInitMissing,
			"the member is not a container, and cloud-init runs only in containers")
	}
	_, who, err := s.accounts().Credential("")
	env := append(s.environment(who, nil), "GOMAXPROCS=2")
	return prepared{path: "/proc/self/exe", args: []string{"member-cloud-init", ArgCloudInit}, dir: "/", env: env}, err
}

// accounts of a container are its own; a plain directory uses the node's.
func (s Settings) accounts() accounts.Files { return accounts.Files{Etc: "/etc"} }

func (s Settings) workDir(workDir string) (string, error) {
	if workDir != "" && !filepath.IsAbs(workDir) {
		return "", wire.Errorf(wire.CodeSpecInvalid, "workDir: %q is not an absolute path", workDir)
	}
	dir := filepath.Join(s.Root, workDir)
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return "", wire.Errorf(wire.CodePathInvalid, "workDir: %q is not a directory of the member", workDir)
	}
	return dir, nil
}

// environment is a clean one: nothing of the agent's. What the task brings wins, except for the names
// by which the member is known.
func (s Settings) environment(who accounts.Account, env []string) []string {
	home, root, temp := who.Home, "", "/tmp"
	if s.Mode == ModeProcess {
		home, root, temp = filepath.Join(s.Root, "home"), s.Root, filepath.Join(s.Root, "tmp")
	}
	full := []string{"PATH=" + DefaultPath, "LANG=C.UTF-8", "HOME=" + home, "USER=" + who.Name, "LOGNAME=" + who.Name,
		"TMPDIR=" + temp}
	full = append(append(append(full, s.Env...), env...), EnvMember+"="+s.MemberID, EnvInstance+"="+s.InstanceID,
		EnvRoot+"="+root)
	return program.LastWins(full)
}

// shadowed returns the member's own file for an absolute name, if it has one: without namespaces, tasks see the
// member's directory as if it lay over the node's files.
func (s Settings) shadowed(name string) string {
	own := filepath.Join(s.Root, name)
	if s.Mode == ModeProcess && filepath.IsAbs(name) && program.Executable(own) == nil {
		return own
	}
	return name
}
