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

// Proof states by which rights, and from which versions of which rows, a caller is answered. Two equal proofs of one
// subject mean that the answer is the same, for any caller. The zero Proof proves nothing.
type Proof struct{ rights, versions string }

// Rights returns what gives the answer, the same for all callers of equal bindings and tenant. It changes every hour.
func (p Proof) Rights() string { return p.rights }

// given returns the digest of the bindings and the tenant, the last part of the text of rights.
func (p Proof) given() string { return p.rights[strings.LastIndexByte(p.rights, ' ')+1:] }

// anchor returns the number of the scope's row that the proof rests on, the first part of the text of rights.
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

// Same reports whether both proofs state the same rights and rows, whatever their anchors. It is for subjects without
// versions of rows, since the numbers of versions come back one day.
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
	instancesProofSQL = `SELECT n, rights, versions
		FROM platform.prove_instances($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
)

// CallerSubject returns the caller alone as a subject: a proof states its rights, and nothing of any row.
func CallerSubject() Subject { return ProjectSubject("") }

// ProjectSubject returns the caller with a project as a subject; a proof exists until the project is deleted.
func ProjectSubject(id ids.ID) Subject {
	return Subject{sql: callerProofSQL, args: []string{string(id)}}
}

// InstanceSubject returns an instance with its members, its last operation, that one's steps, and its events.
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

// InstancesSubject returns a page of a project's instances, newest first, with their last operations. A filter may pass
// over any number of rows before it finds a page.
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

// Provable reports whether answers to the credential can be proved: those to a person's session alone.
func (c Credential) Provable() bool { return c.kind == "session" }

// Prove proves a subject for the caller of ctx, in one statement, which others may share. It returns no proof and no
// error for a caller that is unknown, sees the subject only through a share, or does not see it at all.
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

// proved returns a proof and keeps its anchor for the next one, so that callers of the same rights have equal proofs.
func (db *DB) proved(rights, versions *string) Proof {
	proof := Proof{rights: deref(rights), versions: deref(versions)}
	if proof.Holds() {
		db.anchor.Store(proof.anchor())
	}
	return proof
}

// Proving follows the reads of one answer, to learn what the answer rests on. It is for one goroutine.
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

// Proved returns the proof of what was read. It is not ok without a proof, and where something was read by other rights
// than the proved ones, since others with the proved rights are shown the answer.
func (p *Proving) Proved() (Proof, bool) {
	return p.proof, p.proof.Holds() && !p.mixed && p.given == p.proof.given()
}

// queue adds the proof of the subject as the first statement of a read, once.
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

// read notes the rights that a read ran with.
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
