package nodelogs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

const (
	// maxQuery bounds a query, in bytes.
	maxQuery = 64 << 10
	// maxFrame bounds a document that an agent sends, in bytes: a line whose every byte takes six.
	maxFrame = 6*MaxText + 4<<10
)

// Code is why a reading ended before its end.
type Code string

// The codes.
const (
	// QueryInvalid is a query that cannot be read.
	QueryInvalid Code = "QUERY_INVALID"
	// MemberUnknown is a member of which the node has no logs.
	MemberUnknown Code = "MEMBER_UNKNOWN"
	// ProcessUnknown is a process that the member has not started.
	ProcessUnknown Code = "PROCESS_UNKNOWN"
	// CursorAhead is a cursor beyond the last line.
	CursorAhead Code = "CURSOR_AHEAD"
	// Failed is everything else.
	Failed Code = "FAILED"
)

// Error is why a reading ended before its end.
type Error struct {
	// Code is one of the codes.
	Code Code `json:"code"`
	// Message says more.
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrBroken is the cause of every error about what an agent sent, or did not send.
var ErrBroken = errors.New("the node's answer broke off or cannot be read")

// frame is what an agent sends; one of the fields is set.
type frame struct {
	Processes *[]string `json:"processes,omitempty"`
	Line      *Line     `json:"line,omitempty"`
	End       *Error    `json:"end,omitempty"` // without a code after the last line
}

// Source is where an agent reads lines.
type Source interface {
	// Processes returns the names of a member's processes.
	Processes(memberID string) ([]string, error)
	// Read hands the lines to each; it ends with the error of each.
	Read(ctx context.Context, query Query, each func(Line) error) error
}

// Serve answers the query about a member that comes by a stream. It returns when the reader has everything or closes
// the stream, and closes it.
func Serve(ctx context.Context, stream io.ReadWriteCloser, memberID string, source Source) error {
	defer stream.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	incoming := bufio.NewReader(io.LimitReader(stream, maxQuery))
	out := json.NewEncoder(stream)
	var query Query
	line, err := incoming.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &query)
	}
	if err != nil || query.Member != memberID {
		return out.Encode(frame{End: &Error{QueryInvalid,
			"the query is not a JSON document on one line, about this member"}})
	}
	go func() { // a reader sends nothing more: what comes is its end
		_, _ = incoming.ReadByte()
		stop()
		_ = stream.Close() // a line that waits for it does so no longer
	}()
	names, err := source.Processes(query.Member)
	if err == nil {
		if err := out.Encode(frame{Processes: &names}); err != nil {
			return err
		}
		err = source.Read(ctx, query, func(line Line) error { return out.Encode(frame{Line: &line}) })
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return out.Encode(frame{End: endOf(err)})
}

// endOf returns the error that a reader receives: one without a code is replaced by a general text.
func endOf(err error) *Error {
	var coded *Error
	switch {
	case err == nil:
		return &Error{}
	case errors.As(err, &coded):
		return coded
	}
	return &Error{Failed, "the node could not read the logs"}
}

// Read sends a query by a stream and hands what comes to names, once, and to each. It returns nil after the last line,
// an [*Error] that the agent sent, ErrBroken for what is not an answer, or the error of names or each. The caller
// closes the stream, which ends a Read that waits.
func Read(stream io.ReadWriter, query Query, names func([]string) error, each func(Line) error) error {
	if err := json.NewEncoder(stream).Encode(query); err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	lines := bufio.NewReaderSize(stream, maxFrame)
	named := false
	for {
		raw, err := lines.ReadSlice('\n')
		var got frame
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBroken, err)
		}
		switch {
		case got.End != nil:
			return got.End.orNil()
		case got.Processes != nil && !named:
			named = true
			err = names(processes(*got.Processes))
		case got.Line != nil && got.Line.check(query):
			err = each(*got.Line)
		default:
			err = ErrBroken
		}
		if err != nil {
			return err
		}
	}
}

func (e *Error) orNil() error {
	if e.Code == "" {
		return nil
	}
	e.Message = Plain([]byte(e.Message))
	return e
}

// processForm is what a process may be called.
var processForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// IsProcess reports whether a text can be a process's name.
func IsProcess(name string) bool { return processForm.MatchString(name) }

// processes keeps the names that can be some.
func processes(found []string) []string {
	kept := []string{}
	for _, name := range found {
		if IsProcess(name) && len(kept) < MaxProcesses {
			kept = append(kept, name)
		}
	}
	return kept
}

// check reports whether a line can be an answer to the query, and makes its text plain.
func (l *Line) check(query Query) bool {
	if !IsProcess(l.Process) || query.Process != "" && l.Process != query.Process || l.Number < 1 ||
		len(l.Text) > MaxText {
		return false
	}
	if l.Mark {
		*l = Line{Process: l.Process, Number: l.Number, Mark: true}
		return true
	}
	if l.Gap != nil {
		*l = Line{Process: l.Process, Number: l.Number, Gap: l.Gap}
		return l.Gap.From >= 1 && l.Gap.To == l.Number && l.Gap.From <= l.Gap.To
	}
	l.Text = Plain([]byte(l.Text))
	return (l.Stream == "stdout" || l.Stream == "stderr") && !l.Time.IsZero()
}
