package memberlog

import (
	"encoding/base64"
	"encoding/json"
	"maps"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

// maxCursor bounds a cursor, in bytes: names and numbers of all processes.
const maxCursor = 32 << 10

// position is how far a reader is: the number of the last line, by process.
type position struct {
	Member ids.ID           `json:"m"`
	After  map[string]int64 `json:"a"`
}

// newPosition begins where a query begins.
func newPosition(query nodelogs.Query) *position {
	p := &position{Member: ids.ID(query.Member), After: map[string]int64{}}
	maps.Copy(p.After, query.After)
	return p
}

// pass goes on to a line.
func (p *position) pass(line nodelogs.Line) { p.After[line.Process] = line.Number }

// cursor is the opaque text of the position.
func (p *position) cursor() string {
	encoded, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	return base64.RawURLEncoding.EncodeToString(encoded)
}

// parseCursor reads a cursor of a member's logs.
func parseCursor(cursor string, member ids.ID) (map[string]int64, error) {
	invalid := fault.New(fault.CursorInvalid, "the cursor is not from these logs").At("after")
	if len(cursor) > maxCursor {
		return nil, invalid
	}
	decoded, err := base64.RawURLEncoding.DecodeString(cursor)
	var p position
	if err == nil {
		err = json.Unmarshal(decoded, &p)
	}
	if err != nil {
		return nil, invalid.Because(err)
	}
	if p.Member != member || len(p.After) > nodelogs.MaxProcesses {
		return nil, invalid
	}
	for process, number := range p.After {
		if !nodelogs.IsProcess(process) || number < 0 {
			return nil, invalid
		}
	}
	return p.After, nil
}
