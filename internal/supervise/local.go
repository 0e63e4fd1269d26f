package supervise

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Local spawns children of this process, each leading a process group. The kernel kills a child when this process dies,
// and what a child leaves in its group is killed when the child ends.
type Local struct{}

type localProcess struct {
	cmd  *exec.Cmd
	exit chan error
}

// Spawn starts the program. The goroutine that starts it keeps its thread until the program ends: the kernel's
// parent-death signal follows the thread that forked.
func (Local) Spawn(spec Spec, out *os.File) (Process, error) {
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = spec.Env, spec.Dir, spec.ExtraFiles
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &localProcess{cmd: cmd, exit: make(chan error, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			err := cmd.Wait()
			_ = p.Signal(syscall.SIGKILL)
			p.exit <- err
		}
	}()
	return p, <-started
}

func (p *localProcess) PID() int    { return p.cmd.Process.Pid }
func (p *localProcess) Wait() error { return <-p.exit }

func (p *localProcess) Signal(signal syscall.Signal) error {
	if err := syscall.Kill(-p.cmd.Process.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
