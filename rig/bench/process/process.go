// Package process runs parts of the benchmark as children of this program, so that their work and memory are their own.
// A child is this program again, with its role in its environment. Commands and answers are lines of JSON.
package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// environment holds the role and the configuration of a child.
const environment = "APP_PLATFORM_BENCH_CHILD"

// stopTimeout is how long a child has to end before it is killed.
const stopTimeout = 20 * time.Second

// Role is what a child is to be; it names its function.
type Role string

// Config is a child's configuration, as JSON.
type assignment struct {
	Role   Role
	Config json.RawMessage
}

// question and answer are the lines.
type question struct {
	Do  string
	Arg json.RawMessage
}

type answer struct {
	Result json.RawMessage
	Error  string
}

// Commands are a child's commands, by name.
type Commands map[string]func(arg json.RawMessage) (any, error)

// Main is a child's own function: it sets up from its configuration, and returns the commands that the child answers
// from then on. Stop is called at the end, unless it is nil.
type Main func(ctx context.Context, config json.RawMessage) (commands Commands, stop func(), err error)

// Run makes this process a child if it was started as one, and returns its exit code; child is false otherwise. Call it
// before anything else.
func Run(roles map[Role]Main) (code int, child bool) {
	text := os.Getenv(environment)
	if text == "" {
		return 0, false
	}
	if err := serve(text, roles); err != nil {
		fmt.Fprintln(os.Stderr, "bench child:", err)
		return 1, true
	}
	return 0, true
}

func serve(text string, roles map[Role]Main) error {
	var mine assignment
	if err := json.Unmarshal([]byte(text), &mine); err != nil {
		return err
	}
	run, ok := roles[mine.Role]
	if !ok {
		return fmt.Errorf("no role %q", mine.Role)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	commands, stop, err := run(ctx, mine.Config)
	if err != nil {
		return fmt.Errorf("%s: %w", mine.Role, err)
	}
	if stop != nil {
		defer stop()
	}
	return obey(commands)
}

// obey answers until the parent closes the pipe.
func obey(commands Commands) error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	if err := out.Encode(answer{Result: json.RawMessage(`"ready"`)}); err != nil {
		return err
	}
	for {
		var asked question
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := out.Encode(reply(commands, asked)); err != nil {
			return err
		}
	}
}

func reply(commands Commands, asked question) answer {
	do, ok := commands[asked.Do]
	if !ok {
		return answer{Error: "no command " + asked.Do}
	}
	result, err := do(asked.Arg)
	if err != nil {
		return answer{Error: err.Error()}
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Result: encoded}
}

// Child is a running child.
type Child struct {
	role    Role
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// Start makes a child and waits until it is ready.
func Start(ctx context.Context, role Role, config any) (*Child, error) {
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	mine, err := json.Marshal(assignment{Role: role, Config: encoded})
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &Child{role: role, command: exec.CommandContext(ctx, program)}
	c.command.Env = append(os.Environ(), environment+"="+string(mine))
	c.command.Stderr = os.Stderr
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	c.command.WaitDelay = time.Second
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(bufio.NewReaderSize(out, 64<<10))
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	if err := c.read(nil); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	return c, nil
}

// Ask sends a command and decodes its answer, unless that is nil. One at a time.
func (c *Child) Ask(do string, arg, result any) error {
	if err := c.Tell(do, arg); err != nil {
		return err
	}
	return c.Hear(do, result)
}

// Tell sends a command; Hear must follow.
func (c *Child) Tell(do string, arg any) error {
	encoded, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(c.in).Encode(question{Do: do, Arg: encoded}); err != nil {
		return fmt.Errorf("send %s the command %s: %w", c.role, do, err)
	}
	return nil
}

// Hear waits for the answer to the command that Tell sent.
func (c *Child) Hear(do string, result any) error {
	if err := c.read(result); err != nil {
		return fmt.Errorf("%s: %s: %w", c.role, do, err)
	}
	return nil
}

func (c *Child) read(result any) error {
	var got answer
	if err := c.out.Decode(&got); err != nil {
		return err
	}
	if got.Error != "" {
		return errors.New(got.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(got.Result, result)
}

// Stop lets the child end and waits for it; one that does not end is killed. Safe to call twice.
func (c *Child) Stop() {
	_ = c.in.Close()
	killer := time.AfterFunc(stopTimeout, func() { _ = c.command.Process.Kill() })
	defer killer.Stop()
	_ = c.command.Wait()
}
