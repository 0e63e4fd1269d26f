package nodemetrics

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxQuery and maxAnswer bound what each side reads, in bytes.
	maxQuery, maxAnswer = 4 << 10, 2 << 20
	// maxPoints bounds the points of an answer.
	maxPoints = CoarseSpan/CoarseStep + 2
)

// Code is why a series cannot be read.
type Code string

// The codes.
const (
	// QueryInvalid is a query that cannot be read.
	QueryInvalid Code = "QUERY_INVALID"
	// MemberUnknown is a member that the node has not measured.
	MemberUnknown Code = "MEMBER_UNKNOWN"
	// Unmeasured is a node that measures no members.
	Unmeasured Code = "UNMEASURED"
	// Failed is everything else.
	Failed Code = "FAILED"
)

// Error is why a series cannot be read.
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

// Query says what to read.
type Query struct {
	// Member is the member, by its id.
	Member string `json:"memberId"`
	// Range is how many seconds before now the series begins. Up to FineSpan its points are of FineStep, beyond it of
	// CoarseStep.
	Range int64 `json:"rangeSeconds"`
}

type answer struct {
	Points []Point `json:"points"`
	Error  *Error  `json:"error,omitempty"`
}

// Source is where an agent reads series.
type Source interface {
	// Series returns the points of a member, in the order of time.
	Series(query Query) ([]Point, error)
}

// Serve answers the query about a member that comes by a stream, and closes it.
func Serve(stream io.ReadWriteCloser, memberID string, source Source) error {
	defer stream.Close()
	var query Query
	line, err := bufio.NewReader(io.LimitReader(stream, maxQuery)).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &query)
	}
	if err != nil || query.Member != memberID || query.Range < 1 || query.Range > CoarseSpan {
		return json.NewEncoder(stream).Encode(answer{Error: &Error{QueryInvalid,
			"the query is not a JSON document on one line, about this member and at most a week"}})
	}
	points, err := source.Series(query)
	var coded *Error
	switch {
	case errors.As(err, &coded):
	case err != nil: // nothing of an error that has no code
		coded = &Error{Failed, "the node could not read the series"}
	}
	return json.NewEncoder(stream).Encode(answer{Points: points, Error: coded})
}

// Read sends a query by a stream and returns the points. It fails with an [*Error] that the agent sent, or with
// ErrBroken for what is not an answer. The caller closes the stream, which ends a Read that waits.
func Read(stream io.ReadWriter, query Query) ([]Point, error) {
	if err := json.NewEncoder(stream).Encode(query); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	var got answer
	if err := json.NewDecoder(io.LimitReader(stream, maxAnswer)).Decode(&got); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if got.Error != nil {
		return nil, got.Error
	}
	before := int64(0)
	for _, point := range got.Points {
		if point.At <= before || point.Samples < 1 || point.Samples > CoarseStep/FineStep {
			return nil, fmt.Errorf("%w: its points are not in the order of time", ErrBroken)
		}
		before = point.At
	}
	if len(got.Points) > maxPoints {
		return nil, fmt.Errorf("%w: it has %d points", ErrBroken, len(got.Points))
	}
	return got.Points, nil
}
