package volume

import (
	"context"

	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// NoteRead audits that the caller reads a file of a volume. Call it after the node has opened the file, when its size
// is known, and before a byte of it passes. Key: volume.files.read on the project.
// Faults: NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when the volume is not ready.
func (s *Service) NoteRead(ctx context.Context, in FilesInput) error {
	in.Act = ReadFile
	return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		v, err := in.load(ctx, t, in.Act.key())
		if err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: string(in.Act), Key: in.Act.key(), Object: v.object(),
			ObjectID: v.ID, After: in.after(0)})
	})
}
