package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/auditchain"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Bounds of reading a chain: links of a page, bytes of a line of an export and of a key set, and how long
// fetching one may take.
const (
	chainPage  = 500
	maxLine    = 16 << 20
	maxKeys    = 256 << 10
	keysWithin = 30 * time.Second
)

// A source is a chain to be verified: over the API, or in a file that was exported.
type source interface {
	// links yields the links after a place, in pages.
	links(ctx context.Context, after int) iter.Seq2[[]auditchain.Link, error]
	// checkpoints returns all of them.
	checkpoints(ctx context.Context) ([]auditchain.Checkpoint, error)
}

// online is the chain as the platform shows it.
type online struct{ t *command.Tool }

// links reads page by page, until a page is empty. Each page begins after the highest link of the one before.
func (o online) links(ctx context.Context, after int) iter.Seq2[[]auditchain.Link, error] {
	return func(yield func([]auditchain.Link, error) bool) {
		for {
			answer, err := gql.AuditChain(ctx, o.t, after, chainPage)
			if err != nil {
				yield(nil, err)
				return
			}
			page := make([]auditchain.Link, len(answer.AuditChain))
			for i, link := range answer.AuditChain {
				page[i] = auditchain.Link{
					Seq: link.Seq, Entry: entryOf(link.Entry), Canonical: link.Canonical, Leaf: link.Leaf,
					Link:     link.Link,
					SealedAt: link.SealedAt,
				}
				after = max(after, link.Seq)
			}
			if len(page) == 0 || !yield(page, nil) {
				return
			}
		}
	}
}

// entryOf returns an entry as it is hashed, from the fields that the API shows.
func entryOf(e gql.AuditEntry) auditchain.Entry {
	return auditchain.Entry{
		ID: e.Id, TenantID: e.TenantId, ProjectID: e.ProjectId, ActorKind: e.Actor.Kind, ActorID: e.Actor.Id,
		ActorName: e.Actor.Name, PermissionKey: e.PermissionKey, Action: e.Action, Allowed: e.Allowed,
		ObjectID: e.ObjectId,
		Before:   e.Before, After: e.After, Reason: e.Reason, Code: e.Code, Repeats: e.Repeats,
		CorrelationID: e.CorrelationId,
		Origin:        e.Origin, BreakGlass: e.BreakGlass, CreatedAt: e.CreatedAt,
	}
}

func (o online) checkpoints(ctx context.Context) ([]auditchain.Checkpoint, error) {
	return o.checkpointsAfter(ctx, 0)
}

// checkpointsAfter reads the checkpoints of the links after a place. Checkpoints that do not advance are an error, as
// reading them would not end.
func (o online) checkpointsAfter(ctx context.Context, after int) (all []auditchain.Checkpoint, err error) {
	for {
		answer, err := gql.AuditCheckpoints(ctx, o.t, after)
		if err != nil || len(answer.AuditCheckpoints) == 0 {
			return all, err
		}
		for _, one := range answer.AuditCheckpoints {
			if one.Seq <= after {
				return nil, fmt.Errorf("checkpoints are not in order at %d", one.Seq)
			}
			all = append(all, auditchain.Checkpoint{
				ID: one.Id, Seq: one.Seq, Link: one.Link, Signature: one.Signature, CreatedAt: one.CreatedAt,
			})
			after = one.Seq
		}
	}
}

// A line is a line of an export: a link or a checkpoint.
type line struct {
	Link       *auditchain.Link       `json:"link,omitempty"`
	Checkpoint *auditchain.Checkpoint `json:"checkpoint,omitempty"`
}

// exported is a chain in a file.
type exported string

// lines yields the file's lines; the last one may lack its end.
func (e exported) lines() iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		file, err := os.Open(string(e))
		if err != nil {
			yield(line{}, command.Usage(err))
			return
		}
		defer func() { _ = file.Close() }()
		scanner := bufio.NewScanner(file)
		scanner.Buffer(nil, maxLine)
		for number := 1; scanner.Scan(); number++ {
			if len(strings.TrimSpace(scanner.Text())) == 0 {
				continue
			}
			var one line
			if err := json.Unmarshal(scanner.Bytes(), &one); err != nil ||
				(one.Link == nil) == (one.Checkpoint == nil) {
				yield(line{}, command.Usagef("%s: line %d is neither a link nor a checkpoint", string(e), number))
				return
			}
			if !yield(one, nil) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			yield(line{}, command.Usagef("%s: %w", string(e), err))
		}
	}
}

// links yields the file's links in pages as long as the platform's.
func (e exported) links(_ context.Context, after int) iter.Seq2[[]auditchain.Link, error] {
	return func(yield func([]auditchain.Link, error) bool) {
		var page []auditchain.Link
		for one, err := range e.lines() {
			if err != nil {
				yield(nil, err)
				return
			}
			if one.Link == nil || one.Link.Seq <= after {
				continue
			}
			if page = append(page, *one.Link); len(page) == chainPage {
				if !yield(page, nil) {
					return
				}
				page = nil
			}
		}
		if len(page) > 0 {
			yield(page, nil)
		}
	}
}

func (e exported) checkpoints(context.Context) (all []auditchain.Checkpoint, err error) {
	for one, err := range e.lines() {
		if err != nil {
			return nil, err
		}
		if one.Checkpoint != nil {
			all = append(all, *one.Checkpoint)
		}
	}
	return all, nil
}

// readKeys reads a key set from a file.
func readKeys(path string) (set jose.JSONWebKeySet, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return set, command.Usage(err)
	}
	if err := json.Unmarshal(text, &set); err != nil || len(set.Keys) == 0 {
		return set, command.Usagef("%s does not contain a key set (RFC 7517)", path)
	}
	return set, nil
}

// fetchKeys fetches the keys that the platform publishes. No credential is sent.
func fetchKeys(ctx context.Context, server string) (set jose.JSONWebKeySet, err error) {
	ctx, cancel := context.WithTimeout(ctx, keysWithin)
	defer cancel()
	text, err := command.Published(ctx, server, "/.well-known/jwks.json", maxKeys)
	if err == nil {
		err = json.Unmarshal(text, &set)
	}
	if err != nil {
		return set, command.Unavailable("the published keys", err)
	}
	return set, nil
}
