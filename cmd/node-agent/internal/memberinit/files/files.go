// Package files is the part of the agent's program that serves the files of a member, as the user who logs in, to sftp,
// scp and the remote mode of editors: a member needs no program of its own for it.
package files

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// Main serves the files that this process may reach by SFTP on its input and output, until the input ends. A name that
// is not absolute is below the one folder of args.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "member-files: one argument is needed: the folder to begin in")
		return 127
	}
	server, err := sftp.NewServer(standard{os.Stdin, os.Stdout}, sftp.WithServerWorkingDirectory(args[0]))
	if err == nil {
		err = server.Serve()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "member-files:", err)
		return 1
	}
	return 0
}

// standard is the input and the output of this process, as one connection.
type standard struct {
	io.Reader
	io.WriteCloser
}
