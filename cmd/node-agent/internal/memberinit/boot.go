package memberinit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// boot prepares the init of a member without walls and ends by becoming it. It writes any failure to the status
// descriptor too, since the agent waits there.
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

func become(settings Settings) error {
	unix.Umask(0o022)
	if err := openSocket(settings.Dir); err != nil {
		return err
	}
	if err := keepState(filepath.Join(settings.Dir, DirState)); err != nil {
		return err
	}
	env := append([]string{"PATH=" + DefaultPath}, os.Environ()...)
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
