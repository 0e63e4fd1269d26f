package memberinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/shim"
)

func (p *pipes) feed(command prepared, stdin []byte) {
	spec := shim.Spec{Path: command.path, Args: command.args, Dir: command.dir, Env: command.env,
		Credential: command.credential}
	_ = json.NewEncoder(p.spec.write).Encode(spec)
	_ = p.spec.write.Close()
	_, _ = p.stdin.write.Write(stdin) // a command need not read its input
	_ = p.stdin.write.Close()
}

// duct is a pipe with both ends.
type duct struct{ read, write *os.File }

// pipes connect init and a shim.
type pipes struct{ stdin, stdout, stderr, spec duct }

func openPipes() (*pipes, error) {
	var p pipes
	for _, end := range []*duct{&p.stdin, &p.stdout, &p.stderr, &p.spec} {
		read, write, err := os.Pipe()
		if err != nil {
			p.closeAll()
			return nil, fmt.Errorf("start run: %w", err)
		}
		end.read, end.write = read, write
	}
	return &p, nil
}

// child lists the shim's descriptors 0 to 3 and sets them to block, as programs expect them.
func (p *pipes) child() []*os.File {
	files := []*os.File{p.stdin.read, p.stdout.write, p.stderr.write, p.spec.read}
	for _, file := range files {
		_ = syscall.SetNonblock(int(file.Fd()), false)
	}
	return files
}

func (p *pipes) closeChild() {
	for _, file := range []*os.File{p.stdin.read, p.stdout.write, p.stderr.write, p.spec.read} {
		_ = file.Close()
	}
}

// openDucts opens pipes; with an error none is open.
func openDucts(count int) ([]duct, error) {
	var list []duct
	for range count {
		read, write, err := os.Pipe()
		if err != nil {
			closeReaders(list)
			closeWriters(list)
			return nil, err
		}
		list = append(list, duct{read: read, write: write})
	}
	return list, nil
}

func closeReaders(list []duct) {
	for _, end := range list {
		_ = end.read.Close()
	}
}

func closeWriters(list []duct) {
	for _, end := range list {
		_ = end.write.Close()
	}
}

func (p *pipes) closeAll() {
	for _, end := range []duct{p.stdin, p.stdout, p.stderr, p.spec} {
		if end.read != nil {
			_ = errors.Join(end.read.Close(), end.write.Close())
		}
	}
}
