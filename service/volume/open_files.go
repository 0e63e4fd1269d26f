package volume

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
	"github.com/gpuaas/app-platform/service/kit/posix"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// FilesAct is what a caller does with the files of a volume; its text is the action's name in the audit.
type FilesAct string

// The acts.
const (
	// LookFiles reads names and sizes, and no bytes. It is not audited.
	LookFiles FilesAct = "listVolumeFiles"
	// ReadFile reads a file; NoteRead audits it, when its size is known.
	ReadFile FilesAct = "readVolumeFile"
	// BringFile brings a part of a file in. It is not audited: no one can read a part.
	BringFile FilesAct = "bringVolumeFile"
	// WriteFile brings the last part of a file in, or all of it, or makes a folder.
	WriteFile FilesAct = "writeVolumeFile"
	// DeleteFile deletes a file, or a folder.
	DeleteFile FilesAct = "deleteVolumeFile"
)

// writes reports whether an act changes the volume.
func (a FilesAct) writes() bool { return a != LookFiles && a != ReadFile }

// key is the permission key of an act.
func (a FilesAct) key() authz.Key {
	if a.writes() {
		return authz.VolumeFilesWrite
	}
	return authz.VolumeFilesRead
}

// FilesInput is a request about the files of a volume.
type FilesInput struct {
	VolumeID ids.ID
	Act      FilesAct
	// Path is the file or folder, without the slash at its end.
	Path string
	// After is what the audit keeps besides the path.
	After map[string]any
}

// Files is where the files of a volume are served, and for whom.
type Files struct {
	TenantID ids.ID
	// Places are nodes that serve them, the first to be tried first.
	Places []ids.ID
	// Spec is the request to the agent.
	Spec volumefiles.Spec
	// Caller is who requested it.
	Caller ids.ID
}

// OpenFiles accepts a request about the files of a volume, audits a change before a byte passes, and returns where it
// is served. What is written belongs to the caller's POSIX identity in the tenant, which is assigned at the first need.
// Keys: volume.files.read and volume.files.write on the project.
//
// Faults: NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when the volume is not ready, when it is a local one on no node,
// and when the tenant has assigned all its POSIX ids; NODE_UNREACHABLE while no node serves it.
func (s *Service) OpenFiles(ctx context.Context, in FilesInput) (out *Files, err error) {
	key := in.Act.key()
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		v, err := in.load(ctx, t, key)
		if err != nil {
			return err
		}
		out = &Files{TenantID: v.TenantID, Caller: t.Actor.ID, Spec: volumefiles.Spec{Volume: string(v.ID),
			Storage: v.StorageClass.Name, Tenant: string(v.TenantID), SizeBytes: int64(v.SizeGiB) << 30,
			Write: in.Act.writes()}}
		if out.Places, err = places(ctx, t, v); err != nil {
			return err
		}
		if in.Act.writes() {
			owner, err := posix.Own(ctx, t, v.TenantID)
			if err != nil {
				return err
			}
			if owner != nil {
				out.Spec.ID = owner.UID
			}
		}
		if in.Act != WriteFile && in.Act != DeleteFile {
			return nil
		}
		return audit.Write(ctx, t, audit.Entry{Action: string(in.Act), Key: key, Object: v.object(), ObjectID: v.ID,
			After: in.after(out.Spec.ID)})
	})
	return out, err
}

// load reads the volume and locks it against deletion until the transaction ends. The caller must be allowed the act.
func (in *FilesInput) load(ctx context.Context, t *tx.Tx, key authz.Key) (*Volume, error) {
	action := string(in.Act)
	found, err := tx.Collect(ctx, t, scan, `SELECT `+columns+from+`WHERE v.id = $1 FOR SHARE OF v`, in.VolumeID)
	if err != nil {
		return nil, fmt.Errorf("load volume %s: %w", in.VolumeID, err)
	}
	if len(found) == 0 {
		return nil, audit.Missing(t, action, key, in.VolumeID)
	}
	v := found[0]
	if err := audit.Require(t, action, key, v.object(), v.ID); err != nil {
		return nil, err
	}
	risk := lifecycle.RiskWrite
	if in.Act == DeleteFile {
		risk = lifecycle.RiskDestructive
	}
	if in.Act.writes() {
		if err := t.Actor.RequireRisk(risk); err != nil {
			return nil, audit.Refused(t, action, key, v.object(), v.ID, err)
		}
	}
	return v, v.serves()
}

// serves refuses a volume whose files are not reached any more.
func (v *Volume) serves() error {
	if v.Status == volume.Ready {
		return nil
	}
	return fault.New(fault.FailedPrecondition, "the volume is %s: its files cannot be reached any more", v.Status).
		At("volumeId")
}

// places are the nodes that serve a volume's files.
func places(ctx context.Context, t *tx.Tx, v *Volume) (nodes []ids.ID, err error) {
	if v.StorageClass.Kind == volume.Local && v.NodeID == nil {
		return nil, fault.New(fault.FailedPrecondition,
			"the volume is local and on no node yet: its first member decides the "+
				"node, so launch an app with it first, or use a volume of a shared class").At("volumeId")
	}
	if err := t.QueryRow(ctx, `SELECT platform.open_volume(v) FROM volume v
		WHERE v.id = $1`, v.ID).Scan(&nodes); err != nil {
		return nil, fmt.Errorf("find who serves volume %s: %w", v.ID, err)
	}
	if len(nodes) == 0 {
		return nil, fault.New(fault.NodeUnreachable,
			"no node that is online serves storage class %q: try again when one is", v.StorageClass.Name).Retry(true)
	}
	return nodes, nil
}

// after is what the audit keeps. A path that is not UTF-8 is kept as it is in an address.
func (in *FilesInput) after(owner int) map[string]any {
	path := in.Path
	if !utf8.ValidString(path) {
		_, path, _ = strings.Cut(volumefiles.Address("", path, false), "/files/")
	}
	out := map[string]any{"path": path}
	if in.Act == WriteFile {
		out["uid"] = owner
	}
	maps.Copy(out, in.After)
	return out
}

// MayFiles returns nil while the caller may go on with the files of a volume. Faults: NOT_FOUND, also for a volume that
// is not ready, FORBIDDEN.
func (s *Service) MayFiles(ctx context.Context, id ids.ID, write bool) error {
	act := LookFiles
	if write {
		act = BringFile
	}
	var found *Volume
	actor, err := s.DB.Read(ctx, tx.Row(&found, scan, `SELECT `+columns+from+`WHERE v.id = $1`, id))
	if err != nil {
		return err
	}
	if found == nil || found.Status != volume.Ready {
		return fault.NoSuch()
	}
	return authz.RequireOn(actor, act.key(), found.object())
}
