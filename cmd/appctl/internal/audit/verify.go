package audit

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/auditchain"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const verifyHelp = `Verify the audit's hash chain and name the first place where it is broken.

Each entry's canonical form is computed here, from the entry's fields, and hashed; links and signed checkpoints are
checked against that. The form that the platform reports is only compared. Over the API the command also checks that
every entry that is old enough is in the chain.

A checkpoint that was exported earlier and kept elsewhere (--checkpoint) shows whether the chain was rewritten as a
whole or cut off; an earlier export (--against) also shows which field was changed. Signatures are checked with the keys
that the platform publishes, and those of --keys: give it for keys that are no longer published. With --file only the
keys are read from the platform; with --file and --keys nothing is.`

// Bounds of looking for entries that no link names: ids kept in memory, how long sealing may take, and how many
// suspects are checked again.
const (
	maxNamed    = 5_000_000
	sealsWithin = 5 * time.Minute
	maxSuspects = 100
)

// A verification is a walk along a chain.
type verification struct {
	file, keys, against string
	kept                []string
	chainOnly           bool

	verifier  auditchain.Verifier
	named     map[string]struct{}
	sealed    time.Time
	signed    int
	unsealed  bool // entries beside the chain were looked for
	published jose.JSONWebKeySet
}

// verify returns the command that verifies the chain of the platform, or of an export.
func verify(t *command.Tool) *cobra.Command {
	var v verification
	cmd := t.Command("verify",
		"Verify the audit's hash chain and name the first row that was tampered with; exit code 1 if there is one",
		func(ctx context.Context, _ []string) error { return v.show(ctx, t) })
	cmd.Long = verifyHelp
	cmd.Example = `  appctl audit export audit.jsonl && appctl audit verify --file audit.jsonl --keys keys.json
  appctl audit verify --checkpoint kept.jsonl`
	flags := cmd.Flags()
	flags.StringVar(&v.file, "file", "", "verify this export, and not the platform")
	flags.StringVar(&v.keys, "keys", "", "file with a key set (RFC 7517) of keys that signed checkpoints")
	flags.StringArrayVar(&v.kept, "checkpoint", nil,
		"file with checkpoints that were exported earlier; repeat for more")
	flags.StringVar(&v.against, "against", "", "an earlier export that the chain must still agree with")
	flags.BoolVar(&v.chainOnly, "chain-only", false, "do not search for entries that are missing from the chain")
	return cmd
}

// show verifies and shows the result. A chain that does not hold fails the command.
func (v *verification) show(ctx context.Context, t *command.Tool) error {
	from, err := v.prepare(ctx, t)
	if err != nil {
		return err
	}
	found, err := v.run(ctx, from)
	if err != nil {
		return err
	}
	seq, link := v.verifier.Head()
	answer := map[string]any{
		"holds": found == nil, "links": seq, "lastLink": link.String(), "checkpoints": v.signed,
		"everyEntry": v.unsealed,
		"finding":    found,
	}
	if found == nil {
		return t.Show(command.Line(answer, fmt.Sprintf("the chain is intact: %s, %s; the last link is %d %s",
			render.Plural(seq, "link"), render.Plural(v.signed, "signed checkpoint"), seq, link)))
	}
	if t.AsJSON() {
		if err := t.Show(command.View{JSON: answer}); err != nil {
			return err
		}
	}
	return command.Failed(&client.Error{
		Code: client.CodeFailedPrecondition, Message: "the audit was tampered with: " + found.Text,
	})
}

// prepare reads the keys and returns the chain that is verified.
func (v *verification) prepare(ctx context.Context, t *command.Tool) (from source, err error) {
	if v.keys != "" {
		if v.published, err = readKeys(v.keys); err != nil {
			return nil, err
		}
	}
	if v.file == "" || v.keys == "" {
		server, _, err := t.Target()
		if err != nil {
			return nil, err
		}
		set, err := fetchKeys(ctx, server)
		if err != nil {
			return nil, err
		}
		v.published.Keys = append(v.published.Keys, set.Keys...)
	}
	if v.file != "" {
		v.chainOnly = true
		return exported(v.file), nil
	}
	v.named = make(map[string]struct{})
	_, err = t.Connect()
	return online{t}, err
}

// run verifies and returns the first finding; nil when the chain holds.
func (v *verification) run(ctx context.Context, from source) (*auditchain.Finding, error) {
	checkpoints, err := from.checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range v.kept {
		kept, err := exported(path).checkpoints(ctx)
		if err != nil {
			return nil, err
		}
		if len(kept) == 0 {
			return nil, command.Usagef("%s does not contain a checkpoint", path)
		}
		checkpoints = append(checkpoints, kept...)
	}
	if found := v.expect(checkpoints); found != nil {
		return found, nil
	}
	if found, err := v.walk(ctx, from); found != nil || err != nil {
		return found, err
	}
	if found := v.verifier.End(); found != nil {
		return found, nil
	}
	if over, isOnline := from.(online); isOnline && !v.chainOnly && len(v.named) < maxNamed {
		v.unsealed = true
		return v.everyEntry(ctx, over)
	}
	return nil, nil
}

// expect checks signatures and has the chain compared with what they sign.
func (v *verification) expect(checkpoints []auditchain.Checkpoint) *auditchain.Finding {
	for _, one := range checkpoints {
		if _, err := one.Read(v.published); err != nil {
			text := fmt.Sprintf("checkpoint %s of link %d: %v", one.ID, one.Seq, err)
			return &auditchain.Finding{Problem: auditchain.Unsigned, Seq: one.Seq, Text: text}
		}
		if found := v.verifier.Expect(one); found != nil {
			return found
		}
	}
	v.signed = len(checkpoints)
	return nil
}

// walk reads the chain on from where it was verified, and checks it against an earlier export if there is one.
func (v *verification) walk(ctx context.Context, from source) (*auditchain.Finding, error) {
	earlier, stop := iter.Pull2(exported(v.against).lines())
	defer stop()
	after, _ := v.verifier.Head()
	for page, err := range from.links(ctx, after) {
		if err != nil {
			return nil, err
		}
		for _, link := range page {
			if found, err := v.compare(link, earlier); found != nil || err != nil {
				return found, err
			}
			if v.sealed = link.SealedAt; v.named != nil && len(v.named) < maxNamed {
				v.named[link.Entry.ID] = struct{}{}
			}
		}
		if found := v.verifier.Add(page); found != nil {
			return found, nil
		}
	}
	if v.against == "" {
		return nil, nil
	}
	return cutOff(earlier)
}

// cutOff returns the next link of an earlier export as a finding: the chain has ended before it.
func cutOff(earlier func() (line, error, bool)) (*auditchain.Finding, error) {
	for {
		one, err, more := earlier()
		if err != nil || !more {
			return nil, err
		}
		if one.Link != nil {
			return &auditchain.Finding{Problem: auditchain.Truncated, Seq: one.Link.Seq, EntryID: one.Link.Entry.ID,
				Text: fmt.Sprintf("link %d was exported and is missing: the chain was cut off", one.Link.Seq)}, nil
		}
	}
}

// compare checks a link against the next one of an earlier export.
func (v *verification) compare(link auditchain.Link, earlier func() (line, error, bool)) (*auditchain.Finding, error) {
	for v.against != "" {
		one, err, more := earlier()
		switch {
		case err != nil:
			return nil, err
		case !more:
			v.against = "" // what follows was sealed later
			return nil, nil
		case one.Link != nil && one.Link.Seq != link.Seq:
			return &auditchain.Finding{Problem: auditchain.Missing, Seq: one.Link.Seq, EntryID: one.Link.Entry.ID,
				Text: fmt.Sprintf("link %d is missing", one.Link.Seq)}, nil
		case one.Link != nil:
			return auditchain.Compare(*one.Link, link), nil
		}
	}
	return nil, nil
}

// everyEntry looks for entries that no link names though they are old enough to be sealed. An entry that was sealed in
// the meantime is not one of them.
func (v *verification) everyEntry(ctx context.Context, from online) (*auditchain.Finding, error) {
	to := v.sealed.Add(-sealsWithin)
	var suspects []gql.AuditEntry
	after := ""
	for len(suspects) < maxSuspects {
		answer, err := gql.SearchAudit(ctx, from.t, gql.AuditFilterInput{To: &to}, 100, after)
		if err != nil {
			return nil, err
		}
		for _, edge := range answer.SearchAudit.Edges {
			if _, known := v.named[edge.Node.Id]; !known {
				suspects = append(suspects, edge.Node)
			}
		}
		info := answer.SearchAudit.PageInfo
		if !info.HasNextPage || info.EndCursor == nil || *info.EndCursor == after {
			break
		}
		after = *info.EndCursor
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	if found, err := v.walk(ctx, from); found != nil || err != nil {
		return found, err
	}
	for i := len(suspects) - 1; i >= 0; i-- { // the oldest first
		if _, known := v.named[suspects[i].Id]; !known {
			return &auditchain.Finding{Problem: auditchain.Inserted, EntryID: suspects[i].Id,
				Text: fmt.Sprintf("entry %s of %s is in the audit but not sealed: it was inserted, or sealing stopped",
					suspects[i].Id, suspects[i].CreatedAt.UTC().Format(time.RFC3339))}, nil
		}
	}
	return nil, nil
}
