package logfile

import (
	"bytes"
	"strconv"
	"time"
)

const (
	// MaxText bounds the text of a record, in bytes.
	MaxText = 8 << 10
	// maxRecord bounds a record with its numbers.
	maxRecord = MaxText + 64
	// maxNumber bounds numbers, so that none overflows.
	maxNumber = 1 << 62
	// Jump is how far numbers go on after a restart of the machine: more lines than can have been lost.
	Jump = 1 << 24
)

// Stream is what a line was printed to.
type Stream byte

// The streams.
const (
	Stdout Stream = 'o'
	Stderr Stream = 'e'
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Entry is one record: a line, or a part of a long one.
type Entry struct {
	Number int64
	Time   time.Time
	Stream Stream
	// Part reports that the line continues in the stream's next entry, and Continued that it began in the one before.
	Part, Continued bool
	// Text is as it was printed, without the end of the line.
	Text []byte
}

// The marks of a record: whether it goes on, and whether it goes on from another.
const (
	markWhole = '.'
	markFirst = '+'
	markMid   = '*'
	markLast  = '-'
)

func (e Entry) mark() byte {
	switch {
	case e.Part && e.Continued:
		return markMid
	case e.Part:
		return markFirst
	case e.Continued:
		return markLast
	}
	return markWhole
}

// appendTo adds the record to a buffer.
func (e Entry) appendTo(to []byte) []byte {
	to = strconv.AppendInt(to, e.Number, 10)
	to = append(to, ' ')
	to = strconv.AppendInt(to, e.Time.UnixNano(), 10)
	to = append(to, ' ', byte(e.Stream), e.mark(), ' ')
	to = append(to, e.Text...)
	return append(to, '\n')
}

// parse reads a record without its end of line; false when line is not a record. Text is a part of line.
func parse(line []byte) (Entry, bool) {
	number, rest, _ := bytes.Cut(line, []byte{' '})
	nanos, rest, found := bytes.Cut(rest, []byte{' '})
	if !found || len(rest) < 3 || rest[2] != ' ' || len(rest)-3 > MaxText {
		return Entry{}, false
	}
	n, errNumber := strconv.ParseInt(string(number), 10, 64)
	at, errTime := strconv.ParseInt(string(nanos), 10, 64)
	e := Entry{Number: n, Time: time.Unix(0, at).UTC(), Stream: Stream(rest[0]), Text: rest[3:],
		Part: rest[1] == markFirst || rest[1] == markMid, Continued: rest[1] == markMid || rest[1] == markLast}
	ok := errNumber == nil && errTime == nil && n > 0 && n < maxNumber && at > 0 &&
		(e.Stream == Stdout || e.Stream == Stderr) && rest[1] == e.mark()
	return e, ok
}
