package tx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Proof says by which rights, and from which versions of which rows, a caller is answered. Two proofs of one subject that
// are equal mean that the answer is the same, whoever asks. The zero Proof proves nothing.
type Proof struct{ rights, versions string }

// Rights says what gives the answer: the same text for all whose bindings and tenant are the same. It changes every hour.
func (p Proof) Rights() string { return p.rights }

// given is the digest of the bindings and the tenant, which stands last in the text of rights.
func (p Proof) given() string { return p.rights[strings.LastIndexByte(p.rights, ' ')+1:] }

// anchor is the number of the scope's row that the proof rests on, which stands first.
func (p Proof) anchor() int64 {
	text, _, _ := strings.Cut(p.rights, " ")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0 // no row has it
	}
	return n
}

// Holds reports whether there is a proof at all.
func (p Proof) Holds() bool { return p.rights != "" && p.versions != "" }

// Same reports whether both say the same of rights and of rows, whatever their anchors. It is for subjects without versions
// of rows, whose numbers come back one day.
func (p Proof) Same(other Proof) bool {
	return p.Holds() && p.given() == other.given() && p.versions == other.versions
}

// Size is the memory of a proof's text, in bytes.
func (p Proof) Size() int { return len(p.rights) + len(p.versions) }

// Subject is what an answer is about, so that it can be proved.
type Subject struct {
	sql   string
	args  []string
	alone bool // proving it may take long
}

const (
	callerProofSQL    = `SELECT n, rights, versions FROM platform.prove_callers($1, $2, $3, $4)`
	instanceProofSQL  = `SELECT n, rights, versions FROM platform.prove_instance($1, $2, $3, $4)`
	instancesProofSQL = `SELECT n, rights, versions FROM platform.prove_instances($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
)

// CallerSubject is the caller alone: a proof says by which rights, and nothing of any row.
func CallerSubject() Subject { return ProjectSubject("") }

// ProjectSubject is the caller beside a project, of which there is a proof until it is deleted.
func ProjectSubject(id ids.ID) Subject {
	return Subject{sql: callerProofSQL, args: []string{string(id)}}
}

// InstanceSubject is an instance with its members, its last operation, that one's steps, and its events.
func InstanceSubject(id ids.ID) Subject {
	return Subject{sql: instanceProofSQL, args: []string{string(id)}}
}

// Listed chooses instances of a project; empty fields choose all.
type Listed struct {
	Project, After ids.ID // those after an instance of a list from the newest on
	Most           int
	Statuses       []string
	App, Search    string // an app, and a part of the name
	System         *bool
}

// InstancesSubject is a page of a project's instances, newest first, with their last operations. A filter may pass over
// any number of rows before it finds a page.
func InstancesSubject(of Listed) Subject {
	system := ""
	if of.System != nil {
		system = strconv.FormatBool(*of.System)
	}
	statuses := strings.Join(of.Statuses, ",")
	return Subject{sql: instancesProofSQL, alone: statuses+of.App+system+of.Search != "", args: []string{
		string(of.Project), string(of.After), strconv.Itoa(of.Most), statuses, of.App, system, of.Search,
	}}
}

// Provable reports whether what is answered to the credential can be proved: that of a person's session alone.
func (c Credential) Provable() bool { return c.kind == "session" }

// Prove proves a subject for the caller of ctx, in one statement, which others may share. No proof and no error where
// there is none to be had: for a caller who is unknown, sees the subject only through a share, or does not see it at all.
func (db *DB) Prove(ctx context.Context, about Subject) (Proof, error) {
	credential, ok := CredentialFrom(ctx)
	if !ok || !credential.Provable() {
		return Proof{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	one := &claim{ctx: ctx, credential: credential, about: about, done: make(chan error, 1)}
	var err error
	from := db.poolFor(credential)
	if about.alone {
		err = db.proveAll(ctx, from, []*claim{one})
	} else {
		db.provers.of(db, from, about.sql).Add(one)
		err = one.wait(ctx)
	}
	if err != nil {
		return Proof{}, fmt.Errorf("prove: %w", err)
	}
	if one.proof.rights != "" {
		tell(ctx, nil)
	}
	return one.proof, nil
}

// proved returns a proof, whose anchor the next one names, so that callers of the same rights have the same proofs.
func (db *DB) proved(rights, versions *string) Proof {
	proof := Proof{rights: deref(rights), versions: deref(versions)}
	if proof.Holds() {
		db.anchor.Store(proof.anchor())
	}
	return proof
}

// Proving accompanies the reads of one answer, to learn what it is made from. It is for one goroutine.
type Proving struct {
	about Subject
	proof Proof
	asked bool
	given string // by which rights the answer's reads were made, as the proof has them; empty for none yet
	mixed bool   // they were by different ones
}

type provingKey struct{}

// WithProving returns a context whose first Read proves the subject before it reads anything else, unless known holds:
// what is read afterwards is as new as the proof, or newer, so that it is never taken for newer than it is.
func WithProving(ctx context.Context, about Subject, known Proof) (context.Context, *Proving) {
	p := &Proving{about: about, proof: known, asked: known.Holds()}
	return context.WithValue(ctx, provingKey{}, p), p
}

// Proved returns the proof of what was read; not ok where there is none, and where something was read by other rights than
// those that were proved, since others are shown it by these.
func (p *Proving) Proved() (Proof, bool) {
	return p.proof, p.proof.Holds() && !p.mixed && p.given == p.proof.given()
}

// queue proves the subject as the first statement of a read, once.
func (p *Proving) queue(batch *pgx.Batch, db *DB, credential Credential) {
	if p == nil || p.asked || !credential.Provable() {
		return
	}
	one := &claim{credential: credential, about: p.about}
	batch.Queue(p.about.sql, proofArgs([]*claim{one}, db.anchor.Load())...).Query(func(rows pgx.Rows) error {
		err := db.scanProofs(rows, []*claim{one})
		p.proof, p.asked = one.proof, err == nil
		return err
	})
}

// read notes by which rights a read was made.
func (p *Proving) read(e *entered) {
	if p == nil {
		return
	}
	sum := sha256.Sum256(append([]byte(deref(e.tenant)+" "), e.bindings...))
	given := hex.EncodeToString(sum[:])
	p.mixed = p.mixed || p.given != "" && p.given != given
	p.given = given
}

func provingOf(ctx context.Context) *Proving {
	p, _ := ctx.Value(provingKey{}).(*Proving)
	return p
}
