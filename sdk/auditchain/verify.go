package auditchain

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Problem is what is wrong with a chain.
type Problem string

// The problems.
const (
	// Changed is an entry that is not what was sealed.
	Changed Problem = "changed"
	// Missing is an entry or a link that is not there any more.
	Missing Problem = "missing"
	// Inserted is a link, or an entry, that was never sealed there.
	Inserted Problem = "inserted"
	// Reordered is a link that is in another's place.
	Reordered Problem = "reordered"
	// Truncated is a chain that ends before a link that was signed.
	Truncated Problem = "truncated"
	// Rewritten is a chain that is consistent in itself, but not with a link that was signed.
	Rewritten Problem = "rewritten"
	// Unsigned is a checkpoint whose signature is not valid.
	Unsigned Problem = "unsigned"
)

// Finding is the first place where a chain is wrong.
type Finding struct {
	Problem Problem `json:"problem"`
	// Seq is the place in the chain; EntryID is the entry there, empty when it is unknown.
	Seq     int    `json:"seq"`
	EntryID string `json:"entryId,omitempty"`
	// Field is the entry's field that differs, empty where it is unknown.
	Field string `json:"field,omitempty"`
	// Text describes the finding for a person.
	Text string `json:"text"`
}

// Error returns the Text.
func (f *Finding) Error() string { return f.Text }

// Verifier walks a chain from its beginning. The zero value is ready.
type Verifier struct {
	seq            int
	head, previous Hash
	headEntry      string
	signed         map[int]Checkpoint
	lastGood       int
	values         map[string]map[string]json.RawMessage
}

// Expect makes the verifier compare links with signed checkpoints, whose signatures the caller has verified. Two
// checkpoints of the same place must name the same link.
func (v *Verifier) Expect(checkpoints ...Checkpoint) *Finding {
	if v.signed == nil {
		v.signed = make(map[int]Checkpoint)
	}
	for _, one := range checkpoints {
		if other, ok := v.signed[one.Seq]; ok && other.Link != one.Link {
			return &Finding{Problem: Rewritten, Seq: one.Seq,
				Text: fmt.Sprintf("two signed checkpoints differ in link %d: the chain was rewritten between them",
					one.Seq)}
		}
		v.signed[one.Seq] = one
	}
	return nil
}

// Head returns the place and the hash of the last link that is right.
func (v *Verifier) Head() (seq int, link Hash) { return v.seq, v.head }

// Add verifies the links that follow, in the order that their source gives them. A wrong link is explained
// from those beside it, so pages of some hundred links explain more than single ones.
func (v *Verifier) Add(page []Link) *Finding {
	for _, link := range page {
		v.note(link.Entry)
	}
	for _, link := range page {
		if found := v.check(link, page); found != nil {
			return found
		}
	}
	return nil
}

// End returns a finding when the chain ends before a link that was signed; nil otherwise.
func (v *Verifier) End() *Finding {
	first := 0
	for seq := range v.signed {
		if seq > v.seq && (first == 0 || seq < first) {
			first = seq
		}
	}
	if first == 0 {
		return nil
	}
	return &Finding{Problem: Truncated, Seq: v.seq + 1,
		Text: fmt.Sprintf("the chain ends at %d, but a checkpoint signed link %d: its end was cut off", v.seq, first)}
}

func (v *Verifier) check(link Link, page []Link) *Finding {
	if link.Seq != v.seq+1 {
		return v.gap(link)
	}
	if link.Canonical == "" {
		return &Finding{Problem: Missing, Seq: link.Seq, EntryID: link.Entry.ID,
			Text: fmt.Sprintf("entry %s, sealed at %d, is missing", link.Entry.ID, link.Seq)}
	}
	own, err := link.Entry.Canonical()
	if err != nil {
		return &Finding{Problem: Changed, Seq: link.Seq, EntryID: link.Entry.ID,
			Text: fmt.Sprintf("entry %s at %d has no canonical form: %v", link.Entry.ID, link.Seq, err)}
	}
	if string(own) != link.Canonical {
		field := firstDifference(own, []byte(link.Canonical))
		return &Finding{Problem: Changed, Seq: link.Seq, EntryID: link.Entry.ID, Field: field,
			Text: fmt.Sprintf("entry %s at %d differs from the canonical form that comes with it%s", link.Entry.ID,
				link.Seq, in(field))}
	}
	leaf := Leaf(own)
	if leaf.String() != link.Leaf {
		return v.unsealed(link, leaf, page)
	}
	if Next(v.head, leaf).String() != link.Link {
		return v.unlinked(link, leaf, page)
	}
	v.previous, v.head, v.headEntry, v.seq = v.head, Next(v.head, leaf), link.Entry.ID, link.Seq
	if signed, ok := v.signed[link.Seq]; ok && signed.Link != link.Link {
		return &Finding{Problem: Rewritten, Seq: v.lastGood + 1,
			Text: fmt.Sprintf("link %d is not the one that was signed: the chain was rewritten somewhere from %d on",
				link.Seq, v.lastGood+1)}
	} else if ok {
		v.lastGood = link.Seq
	}
	return nil
}

func (v *Verifier) gap(link Link) *Finding {
	if link.Seq > v.seq+1 {
		return &Finding{Problem: Missing, Seq: v.seq + 1,
			Text: fmt.Sprintf("link %d is missing: %d is followed by %d", v.seq+1, v.seq, link.Seq)}
	}
	return &Finding{Problem: Reordered, Seq: link.Seq, EntryID: link.Entry.ID,
		Text: fmt.Sprintf("link %d comes after link %d", link.Seq, v.seq)}
}

// unsealed explains an entry that does not have the hash of its leaf.
func (v *Verifier) unsealed(link Link, leaf Hash, page []Link) *Finding {
	if at := slices.IndexFunc(page, func(other Link) bool {
		return other.Seq != link.Seq && other.Leaf == leaf.String()
	}); at >= 0 {
		return reordered(link, page[at].Seq)
	}
	field := v.guess(link.Entry, func(candidate Hash) bool { return candidate.String() == link.Leaf })
	return &Finding{Problem: Changed, Seq: link.Seq, EntryID: link.Entry.ID, Field: field,
		Text: fmt.Sprintf("entry %s at %d was changed after it was sealed%s", link.Entry.ID, link.Seq, in(field))}
}

// unlinked explains a link that does not follow from the one before.
func (v *Verifier) unlinked(link Link, leaf Hash, page []Link) *Finding {
	if v.seq > 0 && Next(v.previous, leaf).String() == link.Link {
		return &Finding{Problem: Inserted, Seq: v.seq, EntryID: v.headEntry,
			Text: fmt.Sprintf("entry %s at %d was inserted: what follows was sealed without it", v.headEntry, v.seq)}
	}
	// A link whose own predecessor is elsewhere in the page belongs there. Else another entry may follow v.seq.
	at := slices.IndexFunc(page, func(other Link) bool {
		own, err := hex.DecodeString(other.Link)
		return err == nil && len(own) == len(Hash{}) && Next(Hash(own), leaf).String() == link.Link
	})
	if at >= 0 {
		return reordered(link, page[at].Seq+1)
	}
	for _, other := range page {
		own, err := other.Entry.Canonical()
		if err != nil || other.Seq == link.Seq {
			continue
		}
		switch leafOf := Leaf(own); {
		case Next(v.head, leafOf).String() == link.Link:
			return reordered(link, other.Seq)
		case other.Seq > link.Seq && Next(v.head, leafOf).String() == other.Link:
			return &Finding{Problem: Inserted, Seq: link.Seq, EntryID: link.Entry.ID,
				Text: fmt.Sprintf("entry %s at %d was inserted: %d was sealed after %d", link.Entry.ID, link.Seq,
					other.Seq, v.seq)}
		}
	}
	if field := v.guess(link.Entry, func(candidate Hash) bool {
		return Next(v.head, candidate).String() == link.Link
	}); field != "" {
		return &Finding{Problem: Changed, Seq: link.Seq, EntryID: link.Entry.ID, Field: field,
			Text: fmt.Sprintf("entry %s at %d was changed after it was sealed, and its leaf with it%s",
				link.Entry.ID, link.Seq, in(field))}
	}
	return &Finding{Problem: Missing, Seq: link.Seq, EntryID: link.Entry.ID,
		Text: fmt.Sprintf("link %d does not follow from link %d: what was between them is missing, or entry %s was "+
			"changed together with its leaf",
			link.Seq, v.seq, link.Entry.ID)}
}

func reordered(link Link, home int) *Finding {
	return &Finding{Problem: Reordered, Seq: link.Seq, EntryID: link.Entry.ID,
		Text: fmt.Sprintf("entries were reordered: %s is at %d and changed places with %d", link.Entry.ID, link.Seq,
			home)}
}

func in(field string) string {
	if field == "" {
		return ""
	}
	return ": " + field + " differs"
}

// firstDifference returns the first field in which two canonical forms differ; empty when it is unknown.
func firstDifference(a, b []byte) string {
	var left, right map[string]json.RawMessage
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return ""
	}
	var names []string
	for name := range left {
		names = append(names, name)
	}
	for name := range right {
		if _, ok := left[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if !bytes.Equal(left[name], right[name]) {
			return name
		}
	}
	return ""
}

// Compare compares a link with the same place in an earlier copy of the chain; nil when they are the same.
// Unlike a hash, a copy shows which field was changed.
func Compare(earlier, now Link) *Finding {
	before, err := earlier.Entry.Canonical()
	if err != nil {
		return &Finding{Problem: Changed, Seq: earlier.Seq, EntryID: earlier.Entry.ID,
			Text: fmt.Sprintf("the earlier copy of link %d cannot be read: %v", earlier.Seq, err)}
	}
	after, err := now.Entry.Canonical()
	if err == nil && bytes.Equal(before, after) && earlier.Link == now.Link {
		return nil
	}
	found := &Finding{Problem: Changed, Seq: earlier.Seq, EntryID: earlier.Entry.ID}
	switch {
	case now.Canonical == "":
		found.Problem, found.Text = Missing, fmt.Sprintf("entry %s, sealed at %d, is missing", earlier.Entry.ID,
			earlier.Seq)
	case earlier.Entry.ID != now.Entry.ID:
		found.Problem, found.EntryID = Reordered, now.Entry.ID
		found.Text = fmt.Sprintf("entry %s is at %d, where %s was: entries were removed, inserted or reordered",
			now.Entry.ID, now.Seq, earlier.Entry.ID)
	case !bytes.Equal(before, after):
		found.Field = firstDifference(before, after)
		found.Text = fmt.Sprintf("entry %s at %d is not what was exported%s", now.Entry.ID, now.Seq, in(found.Field))
	default:
		found.Problem, found.Text = Rewritten,
			fmt.Sprintf("link %d is not the one that was exported: the chain was rewritten", now.Seq)
	}
	return found
}
