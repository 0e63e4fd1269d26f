package node

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxReports is how many volumes one report is of.
const maxReports = 1_000

// VolumeReport is what an agent reports of a volume.
type VolumeReport struct {
	ID        ids.ID
	State     volume.Finding
	UsedBytes float64
	// Message is for a person; empty for nothing.
	Message string
}

// ReportVolumesInput is what an agent reports of the volumes that it looks after.
type ReportVolumesInput struct {
	Volumes []VolumeReport
}

func (in *ReportVolumesInput) check() error {
	wrong := &check.Input{}
	whole(wrong, "input.volumes", len(in.Volumes), 0, maxReports)
	for i, one := range in.Volumes {
		path := fmt.Sprintf("input.volumes.%d", i)
		wrong.Text(path+".message", one.Message, 0, volume.MaxReason)
		bytesOf(wrong, path+".usedBytes", one.UsedBytes)
	}
	return wrong.Err()
}

// maxBytes is the largest whole number that the API's floats hold exactly.
const maxBytes = 1 << 53

func bytesOf(wrong *check.Input, path string, value float64) {
	if value < 0 || value > maxBytes || value != float64(int64(value)) {
		wrong.Bad(path, "must be a whole number of bytes")
	}
}

// storages is the column's value; nil for none reported.
func storages(reported []volume.Storage) any {
	if reported == nil {
		return nil
	}
	return reported
}

func checkStorage(wrong *check.Input, at string, reported []volume.Storage) {
	whole(wrong, at, len(reported), 0, volume.MaxStorages)
	names := make([]string, len(reported))
	for i, one := range reported {
		path := fmt.Sprintf("%s.%d", at, i)
		names[i] = one.Name
		if !volume.ValidName(one.Name) {
			wrong.Bad(path+".name", volume.NameRule)
		}
		bytesOf(wrong, path+".totalBytes", one.TotalBytes)
		bytesOf(wrong, path+".freeBytes", one.FreeBytes)
		wrong.Text(path+".reason", one.Reason, 0, volume.MaxReason)
	}
	once(wrong, at, names)
}

// Volumes returns what the calling node's agent looks after. When that is of the known version it waits for another
// one, at most waitSeconds. It requires task.execute on the node. Faults: INVALID_ARGUMENT, FORBIDDEN.
func (s *Service) Volumes(ctx context.Context, known string, waitSeconds int) (*volume.Charges, error) {
	return follow(ctx, s, known, waitSeconds, func(ctx context.Context) (*volume.Charges, string, []string, error) {
		charges, node, err := s.volumes(ctx)
		if err != nil {
			return nil, "", nil, err
		}
		return charges, charges.Version, []string{event.NodeTopic(node)}, nil
	})
}

func (s *Service) volumes(ctx context.Context) (*volume.Charges, ids.ID, error) {
	var found []json.RawMessage
	actor, err := s.DB.Read(ctx, tx.Rows(&found, func(row pgx.CollectableRow) (out json.RawMessage, err error) {
		return out, row.Scan(&out)
	}, `SELECT platform.node_volumes()`))
	if err != nil {
		return nil, "", err
	}
	if err := authz.RequireOn(actor, authz.TaskExecute, authz.Object{NodeID: actor.NodeID}); err != nil {
		return nil, "", err
	}
	charges := []volume.Charge{}
	if len(found) > 0 {
		if err := json.Unmarshal(found[0], &charges); err != nil {
			return nil, "", fmt.Errorf("read the volumes of %s: %w", actor.NodeID, err)
		}
	}
	return volume.Versioned(charges), actor.NodeID, nil
}

// ReportVolumes keeps what the calling node's agent found of volumes, and returns those that are deleted now, since the
// agent proved that nothing is left of them. Volumes that are not the node's are ignored. It requires node.report.
// Faults: INVALID_ARGUMENT, FORBIDDEN.
func (s *Service) ReportVolumes(ctx context.Context, in ReportVolumesInput) ([]ids.ID, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	gone := []ids.ID{}
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := audit.Require(t, "reportVolumes", authz.NodeReport, object(t.Actor), t.Actor.NodeID); err != nil {
			return err
		}
		var volumes, states, messages []string
		var used []int64
		for _, one := range in.Volumes {
			volumes, states = append(volumes, string(one.ID)), append(states, string(one.State))
			used, messages = append(used, int64(one.UsedBytes)), append(messages, one.Message)
		}
		found, err := t.Query(ctx, `SELECT volume_id, ended
			FROM platform.report_volumes($1, $2, $3, $4)`, volumes, states, used, messages)
		if err != nil {
			return fmt.Errorf("note the volumes of %s: %w", t.Actor.NodeID, err)
		}
		var id ids.ID
		var ended bool
		_, err = pgx.ForEachRow(found, []any{&id, &ended}, func() error {
			if ended {
				gone = append(gone, id)
			}
			return nil
		})
		return err
	})
	return gone, err
}
