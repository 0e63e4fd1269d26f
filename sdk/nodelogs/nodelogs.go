// Package nodelogs is how a node's agent hands on what the processes of its members print: the lines, and the stream by
// which they are read.
//
// A reader sends one query. The agent answers with the names of the member's processes, then with lines, and with an
// end, each a JSON document on a line of its own. A reader that wants no more closes the stream.
//
//	reader  {"memberId":"mem_…","tail":100,"follow":true}
//	agent   {"processes":["server"]}
//	agent   {"line":{"process":"server","number":7,"time":"…","stream":"stdout","text":"listening"}}
//	agent   {"end":{"code":"PROCESS_UNKNOWN","message":"…"}}
//
// Each side checks what it receives: a query comes from elsewhere, and a node need not be what it was.
package nodelogs

import "time"

// Kind is the kind of a tunnel's stream that reads the logs of a member: see package tunnel.
const Kind = "logs"

const (
	// MaxTail bounds the lines of a tail.
	MaxTail = 5000
	// MaxText bounds the text of a line, in bytes; a longer line is several.
	MaxText = 32 << 10
	// MaxProcesses bounds the processes of a member.
	MaxProcesses = 256
)

// Query says what to read.
type Query struct {
	// Member is the member, by its id.
	Member string `json:"memberId"`
	// Process is the only process to read; empty reads all, in the order of their lines' times.
	Process string `json:"process,omitempty"`
	// After maps a process to the number of the last line that the reader has. A process that is not in it is read from
	// its first line, or from the Tail.
	After map[string]int64 `json:"after,omitempty"`
	// Tail begins with the last lines of all processes together; 0 begins with the first. It is at most MaxTail.
	Tail int `json:"tail,omitempty"`
	// Since leaves out lines that were printed before it.
	Since time.Time `json:"since,omitzero"`
	// Limit ends the reading after so many lines and gaps; 0 means without limit.
	Limit int `json:"limit,omitempty"`
	// Follow goes on with lines as they are printed, until the reader leaves or the member is removed.
	Follow bool `json:"follow,omitempty"`
}

// Line is one line, a part of a long one, or a gap.
type Line struct {
	// Process is the process that printed it.
	Process string `json:"process"`
	// Number only rises within its process: it is the cursor after this line. At a gap, it is the number of the last
	// missing line.
	Number int64 `json:"number"`
	// Time and Stream, "stdout" or "stderr", are absent at a gap.
	Time   time.Time `json:"time,omitzero"`
	Stream string    `json:"stream,omitempty"`
	// Text is plain text: see [Plain].
	Text string `json:"text,omitempty"`
	// Part reports that the line goes on in the next one of its stream.
	Part bool `json:"part,omitempty"`
	// Gap reports lines that are not there.
	Gap *Gap `json:"gap,omitempty"`
	// Mark reports that this is not a line: a tail leaves out the process's lines up to Number.
	Mark bool `json:"mark,omitempty"`
}

// Gap is a range of lines that are not there any more.
type Gap struct {
	// From and To are the first and the last number.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Restarted reports that the node restarted, and that few of the numbers have ever been lines.
	Restarted bool `json:"restarted,omitempty"`
}

// Last is the last lines of a process of a member that was removed, in the result of its TEARDOWN.
type Last struct {
	// Process is the process that printed them.
	Process string `json:"process"`
	// Lines are in the order of their numbers.
	Lines []Line `json:"lines"`
	// Earlier reports that there were lines before them.
	Earlier bool `json:"earlier,omitempty"`
}

// First returns the first number that a line or gap covers.
func (l Line) First() int64 {
	if l.Gap != nil {
		return l.Gap.From
	}
	return l.Number
}
