package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxWhy bounds the reason of a quarantine, in bytes.
const maxWhy = 1_000

// evidence is what checking an artifact found.
type evidence struct {
	// ManifestMediaType is that of what lies under the digest, ArtifactType what its manifest says it is.
	ManifestMediaType string             `json:"manifestMediaType"`
	ArtifactType      string             `json:"artifactType,omitempty"`
	Parts             int                `json:"parts"` // all of them, manifests too
	SizeBytes         int64              `json:"sizeBytes"`
	CheckedAt         time.Time          `json:"checkedAt"`
	Signature         *signatureEvidence `json:"signature,omitempty"`
	// Altered is why its bytes are not those of its digest.
	Altered string `json:"altered,omitempty"`
	// Released is why a person released it from quarantine: a check with the same finding does not put it back.
	Released *released `json:"released,omitempty"`
}

type signatureEvidence struct {
	State   lifecycle.SignatureState `json:"state"`
	Key     string                   `json:"key,omitempty"`
	Reasons []string                 `json:"reasons,omitempty"`
}

type released struct {
	Code fault.Code `json:"code"`
	At   time.Time  `json:"at"`
	By   string     `json:"by"`
}

// evidenceOf reads what is stored of an artifact; what was stored before there were sources has less.
func evidenceOf(row *db.Artifact) (out evidence, err error) {
	if len(row.Evidence) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(row.Evidence, &out); err != nil {
		return out, fmt.Errorf("read the evidence of %s: %w", row.ID, err)
	}
	return out, nil
}

// takes notes what was read.
func (e *evidence) takes(found *found, now time.Time) {
	e.CheckedAt, e.Altered, e.Signature = now, "", nil
	if found.altered != nil {
		e.Altered = found.altered.Message
		return
	}
	e.ManifestMediaType, e.ArtifactType, e.Parts, e.SizeBytes = found.parts[0].MediaType, found.artifactType,
		len(found.parts), found.size()
	e.Signature = &signatureEvidence{State: found.signature.State, Reasons: found.signature.Reasons}
	if key := found.signature.Key; key != nil {
		e.Signature.Key = key.Name
	}
}

func (e *evidence) encode() (json.RawMessage, error) {
	encoded, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode the evidence: %w", err)
	}
	return encoded, nil
}

// publish writes what was found, by the rules that hold now.
func (s *Service) publish(ctx context.Context, t *tx.Tx, in PublishArtifactInput, seen *origin.Source,
	found *found) (*db.Artifact, error) {
	const action = "publishArtifact"
	begun, err := begin(ctx, t, in)
	if err != nil {
		return nil, err
	}
	taken := fault.New(fault.Conflict, "an artifact with digest %s exists already",
		found.digest).At("input.ref").Retry(false)
	switch {
	case begun.repeated != nil:
		return begun.repeated, nil
	case found.content == nil:
		return nil, taken
	case begun.from.ID != seen.ID:
		return nil, fault.New(fault.Conflict,
			"the source of the artifact changed while it was read: try again").At("input.ref").Retry(true)
	}
	found.signature = still(found.signature, begun.from)
	code := lacking(begun.from.Policy, found.signature.State)
	if code != "" && begun.from.Policy == lifecycle.SignatureRequired {
		return nil, audit.Refused(t, action, authz.ArtifactPublish, begun.object, "",
			untrusted(code, found.signature.Reasons, "input.ref"))
	}
	row, err := create(ctx, t, in, begun, found, code)
	if tx.Violates(err, "artifact_platform_digest") || tx.Violates(err, "artifact_tenant_digest") {
		return nil, taken
	}
	if err != nil {
		return nil, fmt.Errorf("store artifact: %w", err)
	}
	if err := storeParts(ctx, t, row, found.parts); err != nil {
		return nil, err
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ArtifactPublish, Object: begun.object,
		ObjectID: row.ID, After: trail(row)})
}

// create inserts the artifact; code is why it begins in quarantine, empty when it does not.
func create(ctx context.Context, t *tx.Tx, in PublishArtifactInput, begun *publication, found *found,
	code fault.Code) (*db.Artifact, error) {
	var noted evidence
	noted.takes(found, t.Now)
	encoded, err := noted.encode()
	if err != nil {
		return nil, err
	}
	insert := t.Artifact.Create().SetID(begun.id).SetName(in.Name).SetMediaType(found.mediaType).SetRef(found.ref).
		SetDigest(found.digest).
		SetSizeBytes(found.size()).SetEvidence(encoded).SetKind(found.kind).SetSourceID(begun.from.ID).
		SetPlatforms(found.platforms).
		SetNillableTenantID(tenantOf(begun.object)).SetSignature(found.signature.State).SetVerifiedAt(t.Now).
		SetCreatedAt(t.Now)
	if in.MediaType != "" {
		insert.SetMediaType(in.MediaType)
	}
	if begun.object.ProjectID != "" {
		insert.SetProjectID(begun.object.ProjectID)
	}
	if key := found.signature.Key; key != nil {
		insert.SetSignerKeyID(key.ID)
	}
	if code != "" {
		insert.SetQuarantinedAt(t.Now).SetQuarantineCode(string(code)).SetQuarantineReason(why(code, found.signature))
	}
	return insert.Save(ctx)
}

// why is the reason of a quarantine, for people.
func why(code fault.Code, finding signature.Finding) string {
	text := strings.Join(finding.Reasons, "; ")
	if text == "" {
		text = untrusted(code, nil, "").Message
	}
	return strings.ToValidUTF8(text[:min(len(text), maxWhy)], "")
}

// storeParts inserts the parts of the artifact in one statement.
func storeParts(ctx context.Context, t *tx.Tx, row *db.Artifact, parts []part) error {
	n := len(parts)
	id, role, digest, mediaType := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	platform, title, parent, size := make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	for i, p := range parts {
		id[i], role[i], digest[i], mediaType[i] = string(ids.New(ids.ArtifactPart)), string(p.Role), p.Digest,
			p.MediaType
		platform[i], title[i], parent[i], size[i] = p.Platform, p.Title, p.Parent, p.Size
	}
	_, err := t.Exec(ctx, `INSERT INTO artifact_part (id, artifact_id, tenant_id, position, role, digest, media_type,
		size_bytes, platform, title, parent)
		SELECT p.id, $1, $2, n - 1, role, digest, media_type, size_bytes, platform, title, parent
		FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[])
			WITH ORDINALITY AS p (id, role, digest, media_type, size_bytes, platform, title, parent, n)`,
		row.ID, row.TenantID, id, role, digest, mediaType, size, platform, title, parent)
	if err != nil {
		return fmt.Errorf("store the parts of %s: %w", row.ID, err)
	}
	return nil
}

// trail is what the audit keeps of an artifact.
func trail(row *db.Artifact) map[string]any {
	out := map[string]any{"name": row.Name, "ref": row.Ref, "digest": row.Digest, "stage": row.Stage,
		"signature": row.Signature}
	if row.SignerKeyID != nil {
		out["signerKeyId"] = *row.SignerKeyID
	}
	if row.QuarantinedAt != nil {
		out["quarantined"], out["quarantineCode"], out["quarantineReason"] = true, row.QuarantineCode,
			row.QuarantineReason
	}
	return out
}
