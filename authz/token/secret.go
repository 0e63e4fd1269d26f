// Package token makes and reads credentials: opaque secrets that are looked up by id and compared
// by hash, and signed tokens that are verified without the database.
//
// A secret reads gpu_<kind>_<id>_<32 random bytes in base62><checksum>: the prefix lets scanners find a leaked one, the
// checksum refuses a mistyped one before the database is queried, and at 256 random bits a plain SHA-256 is enough to
// store.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// Kind says what a secret is for; it is the word in its prefix.
type Kind string

// The kinds of secret.
const (
	Session   Kind = "ses" // a person's login
	Key       Kind = "sa"  // a service account's key
	Node      Kind = "nod" // a node agent's credential
	Enrolment Kind = "enr" // a one-time node enrolment
	Login     Kind = "lnk" // a one-time login
	Attempt   Kind = "lat" // a login that is under way at an identity provider
	Invite    Kind = "inv" // an invitation, which the person accepts by a login of their own
	Ticket    Kind = "tic" // a one-time ticket to an endpoint of an app
	Opening   Kind = "opn" // an endpoint that was opened: the cookie of its host
	Bootstrap Kind = "bst" // the first operator's one-time login, which only an administrator of the database can mint
)

// idKinds is which sort of row a secret's id names; the prefix of the row is not repeated in it.
var idKinds = map[Kind]ids.Kind{
	Session: ids.Session, Key: ids.ServiceKey, Node: ids.NodeCredential, Enrolment: ids.NodeEnrolment,
	Login:   ids.LoginLink,
	Attempt: ids.LoginAttempt, Invite: ids.Invitation, Bootstrap: ids.LoginLink,
	Ticket: ids.Opening, Opening: ids.Opening,
}

const (
	alphabet    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	secretChars = 43 // 32 bytes in base62
	crcChars    = 6  // 32 bits in base62
	idChars     = 26
)

// Secret is a parsed or freshly minted secret.
type Secret struct {
	Kind Kind
	ID   ids.ID // the row that holds the hash
	Hash []byte // SHA-256 of the whole text
}

// Mint makes a secret of a kind with a new id. The text is for its holder alone: only ID and Hash
// are stored.
func Mint(kind Kind) (text string, secret Secret) { return MintFor(kind, ids.New(idKinds[kind])) }

// MintFor makes another secret of a row that has its id already.
func MintFor(kind Kind, id ids.ID) (text string, secret Secret) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	body := "gpu_" + string(kind) + "_" + id.Suffix() + "_" + base62(new(big.Int).SetBytes(random[:]), secretChars)
	text = body + checksum(body)
	return text, Secret{Kind: kind, ID: id, Hash: hash(text)}
}

// ParseSecret reads a secret. UNAUTHENTICATED when it is not one, or mistyped.
func ParseSecret(text string) (Secret, error) {
	refused := fault.New(fault.Unauthenticated, "the credential is malformed")
	parts := strings.Split(text, "_")
	if len(text) > 128 || len(parts) != 4 || parts[0] != "gpu" || len(parts[2]) != idChars ||
		len(parts[3]) != secretChars+crcChars {
		return Secret{}, refused
	}
	kind := Kind(parts[1])
	idKind, known := idKinds[kind]
	body := text[:len(text)-crcChars]
	if !known || checksum(body) != text[len(body):] {
		return Secret{}, refused
	}
	id, err := ids.Parse(idKind, string(idKind)+"_"+parts[2])
	if err != nil {
		return Secret{}, refused
	}
	return Secret{Kind: kind, ID: id, Hash: hash(text)}, nil
}

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func checksum(body string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), crcChars)
}

// base62 writes n in exactly width characters.
func base62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(62), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = alphabet[digit.Int64()]
	}
	return string(out)
}
