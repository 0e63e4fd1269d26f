package memberinit

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/accounts"
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
	path, err := lookPath(s.shadowed(command[0]), dir, valueOf(full, "PATH"))
	return prepared{path: path, args: command, dir: dir, env: full, credential: credential}, err
}

// prepareRun prepares a run's command, or the part of this very program that it asks for.
func (s Settings) prepareRun(request wire.Run) (prepared, error) {
	switch {
	case request.Builtin == "":
		return s.prepare(request.Command, request.Env, request.WorkDir, request.User)
	case request.Builtin != wire.BuiltinCloudInit:
		return prepared{}, wire.Errorf(wire.CodeProtocolUnknown, "builtin %q is not known", request.Builtin)
	case s.Mode != ModeContainer:
		return prepared{}, wire.Errorf(wire.CodeCloudInitMissing,
			"the member is no container, in which cloud-init could boot it")
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
	return lastWins(full)
}

// lastWins drops all but the last assignment of each name: with two, C programs would see the first.
func lastWins(env []string) []string {
	at := map[string]int{}
	var unique []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if index, seen := at[name]; seen {
			unique[index] = entry
			continue
		}
		at[name] = len(unique)
		unique = append(unique, entry)
	}
	return unique
}

func valueOf(env []string, name string) string {
	for _, entry := range env {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			return rest
		}
	}
	return ""
}

// shadowed gives the member's own file for an absolute name, if it has one: without namespaces the
// member's directory lies over the node's files as far as tasks can tell.
func (s Settings) shadowed(program string) string {
	own := filepath.Join(s.Root, program)
	if s.Mode == ModeProcess && filepath.IsAbs(program) && executable(own) == nil {
		return own
	}
	return program
}

// lookPath finds a program as execvp does, with the PATH of the command instead of init's.
func lookPath(program, dir, path string) (string, error) {
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return program, executable(program)
	}
	for _, folder := range filepath.SplitList(path) {
		candidate := filepath.Join(folder, program)
		if filepath.IsAbs(candidate) && executable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", wire.Errorf(wire.CodeStartFailed, "command: program %q is not in PATH", program)
}

func executable(program string) error {
	info, err := os.Stat(program)
	switch {
	case err != nil:
		return wire.Errorf(wire.CodeStartFailed, "command: there is no program %q", program)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return wire.Errorf(wire.CodeStartFailed, "command: %q is not an executable file", program)
	}
	return nil
}
