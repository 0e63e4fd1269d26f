// Package memberlog reads what the processes of members print, from the agents of their nodes, and of members that were
// torn down what the teardown's evidence has.
//
// Every opening is in the audit: who, which member, which process, and whether it is followed; what was read is not.
package memberlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

const (
	// MaxPage bounds the lines of a page.
	MaxPage = 1000
	// standardTail is where a reading without a cursor begins: so many lines before the end.
	standardTail = 200
	// maxPageBytes bounds the text of a page, in bytes; a page that would have more ends earlier.
	maxPageBytes = 2 << 20
	// patience bounds how long a node may take for a page.
	patience = 20 * time.Second
)

// Service holds the reads of logs.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Open opens a stream of a member's logs to the agent of a node, on a tenant's account. It fails with
	// NODE_UNREACHABLE where no agent is connected. It is set before the first read; nil reaches none.
	Open func(ctx context.Context, tenant, node, member ids.ID) (io.ReadWriteCloser, error)
}

// Input says what to read.
type Input struct {
	MemberID ids.ID
	// Process is the only process to read; empty reads all.
	Process string
	// After is the cursor to read on from; empty begins with the last Tail lines.
	After string
	// Tail is how many lines before the end a reading without a cursor begins; nil is 200, and 0 begins with the first.
	Tail *int
	// Since leaves out lines from before it.
	Since *time.Time
}

// Line is one line, a part of a long one, or a gap.
type Line struct {
	// Cursor reads on after this line.
	Cursor  string
	Process string
	// At and Stream are nil at a gap.
	At     *time.Time
	Stream *lifecycle.OutputStream
	Text   string
	// Continues reports that the line goes on in the next one of its process and stream.
	Continues bool
	Gap       *Gap
}

// Gap is lines that are not there any more.
type Gap struct {
	// Lines is how many; nil where the number is unknown, since the node restarted.
	Lines     *int
	Restarted bool
}

// lineOf returns a line with the cursor after it.
func lineOf(line nodelogs.Line, cursor string) *Line {
	if gap := line.Gap; gap != nil {
		shown := &Gap{Restarted: gap.Restarted}
		if !gap.Restarted {
			shown.Lines = new(int(min(gap.To-gap.From+1, math.MaxInt32)))
		}
		return &Line{Cursor: cursor, Process: line.Process, Gap: shown}
	}
	stream := lifecycle.StreamStdout
	if line.Stream == "stderr" {
		stream = lifecycle.StreamStderr
	}
	return &Line{Cursor: cursor, Process: line.Process, At: &line.Time, Stream: &stream, Text: line.Text,
		Continues: line.Part}
}

// Page is a part of what a member's processes printed.
type Page struct {
	Lines []*Line
	// Cursor reads on after the page; it is never empty.
	Cursor string
	// More reports that more lines are there already.
	More   bool
	Source lifecycle.LogSource
	// Processes are the names of the member's processes.
	Processes []string
}

// place is where a member's lines are.
type place struct {
	node     ids.ID
	object   authz.Object
	family   string
	evidence []byte // of a member that was torn down
}

const placeSQL = `SELECT m.tenant_id, m.project_id, m.instance_id, coalesce(m.node_id, ''), i.permission_family,
	(SELECT result->'logs' FROM node_task WHERE member_id = m.id AND kind = 'TEARDOWN' AND state = 'SUCCEEDED'
	AND result ? 'logs' ORDER BY id DESC LIMIT 1)
	FROM member m JOIN instance i ON i.id = m.instance_id WHERE m.id = $1`

func scanPlace(row pgx.CollectableRow) (*place, error) {
	p := &place{}
	return p, row.Scan(&p.object.TenantID, &p.object.ProjectID, &p.object.InstanceID, &p.node, &p.family, &p.evidence)
}

// admit requires <family>.member.logs and a policy that allows access LOGS, and audits that the logs are opened.
func (s *Service) admit(ctx context.Context, in Input, follow bool) (*place, error) {
	var found *place
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "readMemberLogs"
		rows, err := t.Query(ctx, placeSQL, in.MemberID)
		if err != nil {
			return fmt.Errorf("find member %s: %w", in.MemberID, err)
		}
		found, err = pgx.CollectExactlyOneRow(rows, scanPlace)
		if errors.Is(err, pgx.ErrNoRows) {
			return audit.Missing(t, action, authz.AppsMemberLogs, in.MemberID)
		}
		if err != nil {
			return fmt.Errorf("find member %s: %w", in.MemberID, err)
		}
		key, err := authz.FamilyKey(found.family, "member.logs")
		if err != nil {
			return fmt.Errorf("logs of member %s: %w", in.MemberID, err)
		}
		if err := audit.Require(t, action, key, found.object, in.MemberID); err != nil {
			return err
		}
		attempt := audit.Entry{Action: action, Key: key, Object: found.object, ObjectID: in.MemberID,
			After: map[string]any{"process": in.Process, "follow": follow}}
		if err := audit.Access(ctx, t, attempt, policy.AccessLogs, "memberId"); err != nil {
			return err
		}
		return audit.Write(ctx, t, attempt)
	})
	return found, err
}

// Check returns nil while the caller may read the logs of a member. It records nothing.
func (s *Service) Check(ctx context.Context, memberID ids.ID) error {
	var found *place
	actor, err := s.DB.Read(ctx, tx.Row(&found, scanPlace, placeSQL, memberID))
	if err != nil {
		return err
	}
	if found == nil {
		return fault.NoSuch()
	}
	key, err := authz.FamilyKey(found.family, "member.logs")
	if err != nil {
		return fmt.Errorf("logs of member %s: %w", memberID, err)
	}
	return authz.RequireOn(actor, key, found.object)
}

// query returns the request to the node, which begins after the cursor. Its faults name the argument.
func (in Input) query() (nodelogs.Query, error) {
	var wrong check.Input
	query := nodelogs.Query{Member: string(in.MemberID), Process: in.Process, Tail: standardTail}
	if in.Process != "" && !nodelogs.IsProcess(in.Process) {
		wrong.Bad("process", "must be the name of a process: letters, digits, dot, dash and underscore, at most 64")
	}
	if in.Tail != nil {
		query.Tail = *in.Tail
	}
	if query.Tail < 0 || query.Tail > MaxPage {
		wrong.Bad("tail", "must be 0 to %d", MaxPage)
	}
	if in.Since != nil {
		query.Since = *in.Since
	}
	if err := wrong.Err(); err != nil {
		return query, err
	}
	if in.After != "" {
		query.Tail = 0
		var err error
		query.After, err = parseCursor(in.After, in.MemberID)
		return query, err
	}
	return query, nil
}
