package memberinit

import (
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/accounts"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/program"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// defaultShell is what a user logs in to whose shell is not there.
const defaultShell = "/bin/sh"

// prepareExec prepares a command, a login, or the part of this very program that serves files.
func (s Settings) prepareExec(request wire.Exec) (prepared, error) {
	if !request.Login && request.Builtin == "" {
		return s.prepare(request.Command, request.Env, "", request.User)
	}
	credential, who, err := s.accounts().Credential(request.User)
	if err != nil {
		return prepared{}, err
	}
	env := s.environment(who, request.Env)
	command := prepared{dir: s.homeDir(who), credential: credential}
	switch {
	case request.Builtin == wire.BuiltinFiles:
		command.path, command.args = "/proc/self/exe", []string{"member-files", ArgFiles, command.dir}
		env = append(env, "GOMAXPROCS=2")
	case request.Builtin != "":
		return prepared{}, wire.Errorf(wire.CodeProtocolUnknown, "builtin %q is not known", request.Builtin)
	default:
		command.path = s.shellOf(who)
		command.args = []string{"-" + filepath.Base(command.path)} // a shell that is called so reads its profile
		if request.Line != "" {
			command.args = []string{filepath.Base(command.path), "-c", request.Line}
		}
		env = append(env, "SHELL="+command.path)
	}
	command.env = program.LastWins(env)
	return command, nil
}

// homeDir is where somebody who logs in begins: their home, or else the root.
func (s Settings) homeDir(who accounts.Account) string {
	home := who.Home
	if s.Mode == ModeProcess {
		home = filepath.Join(s.Root, "home")
	}
	if info, err := os.Stat(home); err == nil && info.IsDir() && filepath.IsAbs(home) {
		return home
	}
	return s.Root
}

// shellOf is what somebody logs in to.
func (s Settings) shellOf(who accounts.Account) string {
	if shell := s.shadowed(who.Shell); filepath.IsAbs(shell) && program.Executable(shell) == nil {
		return shell
	}
	return s.shadowed(defaultShell)
}
