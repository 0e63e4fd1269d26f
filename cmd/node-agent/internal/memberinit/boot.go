package memberinit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// droppedCapabilities are those by which root in a member could reach the node's kernel, clock or
// block devices, or make files that its removal cannot remove. Everything else a daemon may need stays.
var droppedCapabilities = []uintptr{
	unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_TIME, unix.CAP_SYS_BOOT, unix.CAP_LINUX_IMMUTABLE,
	unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_WAKE_ALARM,
}

// boot runs as process 1 of the new namespaces and ends by becoming init. Any failure is told on the
// status descriptor too, since the agent waits there.
func boot(args []string) error {
	settings, err := bootSettings(args)
	if err == nil {
		err = become(settings)
	}
	return tellStatus(err)
}

// bootSettings reads the settings from the member's directory, the only argument. They are not in
// the arguments themselves, which the member's processes can read.
func bootSettings(args []string) (Settings, error) {
	if len(args) != 1 {
		return Settings{}, fmt.Errorf("expected the member's directory, got %d arguments", len(args))
	}
	state, err := os.OpenRoot(filepath.Join(args[0], DirState))
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	defer state.Close()
	return readSettings(state)
}

func readSettings(state *os.Root) (Settings, error) {
	var settings Settings
	raw, err := state.ReadFile(SettingsFile)
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil {
		return settings, fmt.Errorf("read settings: %w", err)
	}
	return settings, nil
}

func tellStatus(err error) error {
	status := os.NewFile(fdStatus, "status")
	defer status.Close()
	if err != nil {
		fmt.Fprintln(status, err)
		return err
	}
	_, err = fmt.Fprintln(status, "ready")
	return err
}

// become keeps to one thread: bounding sets and exec belong to threads.
func become(settings Settings) error {
	runtime.LockOSThread()
	unix.Umask(0o022)
	if err := openSocket(settings.Dir); err != nil {
		return err
	}
	if settings.Mode == ModeNamespace {
		if err := enterRoot(settings); err != nil {
			return err
		}
		if err := dropCapabilities(); err != nil {
			return err
		}
	} else if err := keepState(filepath.Join(settings.Dir, DirState)); err != nil {
		return err
	}
	env := append([]string{"PATH=" + defaultPath}, os.Environ()...)
	if err := unix.Exec("/proc/self/exe", []string{"member-init", ArgInit}, env); err != nil {
		return fmt.Errorf("become init: %w", err)
	}
	return nil
}

// openSocket binds by a relative name, since a socket's path may not be longer than 107 bytes.
func openSocket(dir string) error {
	if err := os.Chdir(filepath.Join(dir, DirRun)); err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	if err := os.Remove(SocketName); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("open socket: %w", err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: SocketName}); err != nil {
		return fmt.Errorf("open socket: bind: %w", err)
	}
	if err := unix.Listen(fd, 128); err != nil {
		return fmt.Errorf("open socket: listen: %w", err)
	}
	return inherit(fd, fdListen)
}

// keepState opens the state directory for init to inherit.
func keepState(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	defer unix.Close(fd)
	return inherit(fd, fdState)
}

// inherit puts a descriptor where init expects it and lets it live through the exec.
func inherit(from, to int) error {
	if err := unix.Dup3(from, to, 0); err != nil {
		return fmt.Errorf("keep descriptor %d: %w", to, err)
	}
	return nil
}

func dropCapabilities() error {
	for _, capability := range droppedCapabilities {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	return nil
}

// probe builds a root exactly as boot does and reports by its exit code.
func probe(args []string) error {
	settings, err := bootSettings(args)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	return enterRoot(settings)
}
