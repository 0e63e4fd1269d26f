package lab

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The control socket carries one JSON document per packet, with open files beside it.
const (
	maxPacket = 128 << 10 // a command line with its environment
	maxFiles  = 32
	controlFD = 3 // the init's end
)

// request is what the lab process asks of an init.
type request struct {
	ID     int        `json:"id"`
	Setup  *setup     `json:"setup,omitempty"`  // the first request
	Spawn  *spawnCall `json:"spawn,omitempty"`  // files: output, then extra files
	PID    int        `json:"pid,omitempty"`    // with Signal
	Signal int        `json:"signal,omitempty"` // to the process group of PID
}

// setup is the configuration of a node that its init receives.
type setup struct {
	Plain    bool   `json:"plain"`              // no namespaces: only watch over the children
	Root     string `json:"root,omitempty"`     // an empty folder to build the root on
	Hostname string `json:"hostname,omitempty"` // also in /etc/hosts
	Address  string `json:"address,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"` // bound of what may be written
	Binds    []Bind `json:"binds,omitempty"`
	Hide     []string
}

type spawnCall struct {
	Command []string `json:"command"`
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
}

// answer is what an init says: the reply to a request, or (ID 0) that a process it spawned has ended.
type answer struct {
	ID     int    `json:"id,omitempty"`
	Error  string `json:"error,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Status int    `json:"status,omitempty"` // wait(2) status of an ended process
}

func sendPacket(conn *net.UnixConn, value any, files ...*os.File) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(data) > maxPacket || len(files) > maxFiles {
		return fmt.Errorf("%d bytes and %d files are more than the %d and %d of a control packet", len(data),
			len(files), maxPacket, maxFiles)
	}
	fds := make([]int, len(files))
	for i, file := range files {
		fds[i] = int(file.Fd())
	}
	_, _, err = conn.WriteMsgUnix(data, syscall.UnixRights(fds...), nil)
	return err
}

// receivePacket reads one packet. The files are the caller's to close.
func receivePacket(conn *net.UnixConn, value any) ([]*os.File, error) {
	data, oob := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, _, _, err := conn.ReadMsgUnix(data, oob)
	if err != nil {
		return nil, err
	}
	files, err := unpackFiles(oob[:oobn])
	if err != nil {
		return nil, err
	}
	return files, json.Unmarshal(data[:n], value)
}

func unpackFiles(oob []byte) (files []*os.File, err error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, message := range messages {
		fds, err := syscall.ParseUnixRights(&message)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

// socketPair makes a control socket: one end to talk on, one for the child to inherit.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	conn, err := unixConn(os.NewFile(uintptr(fds[0]), "control"))
	return conn, os.NewFile(uintptr(fds[1]), "control"), err
}

func unixConn(file *os.File) (*net.UnixConn, error) {
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}
