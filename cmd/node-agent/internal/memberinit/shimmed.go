package memberinit

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/reaper"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/shim"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

// shimmed is a shim that runs, with all that its command starts. The zero value has no process.
type shimmed struct {
	pid   int
	start uint64
	ended <-chan int // its exit code, which is the command's
}

// startShim starts a shim with descriptors 0 to 3; it reads what to run from the last.
func startShim(reap *reaper.Reaper, files []*os.File) (shimmed, error) {
	pid, ended, err := reap.Start(reaper.Child{
		Path: "/proc/self/exe", Args: []string{shim.Arg, shim.Arg}, Dir: "/",
		Env: []string{"GOMAXPROCS=1", "PATH=" + DefaultPath}, Files: files,
	})
	if err != nil {
		return shimmed{}, err
	}
	s := shimmed{pid: pid, ended: ended}
	if stat, err := procfs.ReadStat(pid); err == nil {
		s.start = stat.Start
	}
	return s, nil
}

// kill ends the shim with everything below it. The shim does it, being the subreaper of all that the command started;
// should someone have stopped the shim, init does it for it.
func (s shimmed) kill() {
	if s.pid == 0 {
		return
	}
	_ = unix.Kill(s.pid, unix.SIGTERM)
	if procfs.WaitGone(s.pid, s.start, shim.KillPatience) {
		return
	}
	_ = procfs.KillTree(s.pid, shim.KillPatience)
	_ = unix.Kill(s.pid, unix.SIGKILL)
}
