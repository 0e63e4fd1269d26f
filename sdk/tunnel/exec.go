package tunnel

import (
	"encoding/binary"
	"fmt"
	"io"
)

// KindExec requests an interactive command in a member; its Spec is an Exec. Once it is granted, the stream carries
// frames, as WriteFrame writes them. The command ends with the stream.
const KindExec = "exec"

// Exec is the Spec of KindExec.
type Exec struct {
	// Command is the program with its arguments.
	Command []string `json:"command"`
	// User is the user that runs it, "user" or "user:group" of the member; empty for root.
	User string `json:"user,omitempty"`
	// TTY gives it a terminal of Rows and Cols.
	TTY  bool   `json:"tty,omitempty"`
	Rows uint16 `json:"rows,omitempty"`
	Cols uint16 `json:"cols,omitempty"`
}

// ExecPath takes people's commands: one request is one command. The query names `member` and `command`, once for each
// word of it, and may name `user`, `tty=1`, `rows`, `cols` and `reason`.
const ExecPath = "/v1/exec"

// Frame is the type of a frame of a command.
type Frame byte

// The frames. Towards the command go Input, InputEnd and Size; from it come Output, ErrorOutput and at last Exit.
const (
	// Input is what the command reads next.
	Input Frame = iota
	// InputEnd is the end of it.
	InputEnd
	// Size is another size of the terminal: rows and columns, each as two bytes, the higher first.
	Size
	// Output and ErrorOutput are what the command writes.
	Output
	ErrorOutput
	// Exit is the exit code, as four bytes, the highest first. Nothing comes after it.
	Exit
)

// MaxFrame bounds what a frame carries, in bytes.
const MaxFrame = 64 << 10

// WriteFrame writes one frame: its kind, the length of what it carries as four bytes, the highest first, and that.
func WriteFrame(to io.Writer, kind Frame, carries []byte) error {
	if len(carries) > MaxFrame {
		return fmt.Errorf("a frame has %d bytes, more than the maximum of %d", len(carries), MaxFrame)
	}
	frame := make([]byte, 5, 5+len(carries))
	frame[0] = byte(kind)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(carries))) // #nosec G115 -- at most MaxFrame
	_, err := to.Write(append(frame, carries...))
	return err
}

// ReadFrame reads one frame.
func ReadFrame(from io.Reader) (kind Frame, carries []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > MaxFrame {
		return 0, nil, fmt.Errorf("a frame has %d bytes, more than the maximum of %d", length, MaxFrame)
	}
	carries = make([]byte, length)
	_, err = io.ReadFull(from, carries)
	return Frame(head[0]), carries, err // #nosec G602 -- an array of five bytes
}

// SizeOf is what a Size carries.
func SizeOf(rows, cols uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, rows), cols)
}

// ReadSize reads what a Size carries; zeros for anything else.
func ReadSize(carries []byte) (rows, cols uint16) {
	if len(carries) != 4 {
		return 0, 0
	}
	return binary.BigEndian.Uint16(carries), binary.BigEndian.Uint16(carries[2:])
}

// ExitOf is what an Exit carries.
func ExitOf(code int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(code)) // #nosec G115 -- exit codes are small
}

// ReadExit reads what an Exit carries; -1 for anything else.
func ReadExit(carries []byte) int {
	if len(carries) != 4 {
		return -1
	}
	return int(binary.BigEndian.Uint32(carries))
}
