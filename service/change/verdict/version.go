package verdict

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbgeneration "github.com/gpuaas/app-platform/ent/generated/db/generation"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// chooseVersion finds the version that an upgrade or a rollback leads to.
func (v *Verdicts) chooseVersion(ctx context.Context, t *tx.Tx) error {
	v.From = &operation.Version{ManifestID: v.Stored.ID, Version: v.Stored.Version, Config: v.Instance.Config}
	if v.Kind == lifecycle.InstanceRollback {
		return v.chooseGeneration(ctx, t)
	}
	return v.chooseManifest(ctx, t)
}

// chooseManifest finds an upgrade's version and keeps it from promotion until the commit. A new version must be ACTIVE,
// or in a canary that has chosen the project; the present one must not be retired.
func (v *Verdicts) chooseManifest(ctx context.Context, t *tx.Tx) error {
	stored := v.Stored
	if v.Version != "" && v.Version != stored.Version {
		found, err := t.Manifest.Query().Where(dbmanifest.AppSlug(v.Instance.AppSlug), dbmanifest.Version(v.Version)).
			Only(ctx)
		if db.IsNotFound(err) {
			return fault.New(fault.NotFound, "app %q has no version %q", v.Instance.AppSlug, v.Version).
				At("input.version")
		}
		if err != nil {
			return fmt.Errorf("load a manifest: %w", err)
		}
		stored = found
	}
	if err := hold(ctx, t, stored); err != nil {
		return err
	}
	if stays := stored.ID == v.Stored.ID; !stays || stored.Stage == lifecycle.StageRetired {
		if err := enter(stored, v.Instance.ProjectID, "upgrade", "input.version"); err != nil {
			return err
		}
	}
	config := v.Config
	if config == nil {
		config = v.Instance.Config
	}
	return v.lead(stored, config)
}

// lead notes the version that the change leads to. An upgrade's config gets the new schema's defaults; that it does not
// fit is a refusal of compatibility, later.
func (v *Verdicts) lead(stored *db.Manifest, config []byte) error {
	parsed, err := manifest.Parse(stored.Document)
	if err != nil {
		return fmt.Errorf("read manifest %s: %w", stored.ID, err)
	}
	v.misfit = nil
	if v.Kind == lifecycle.InstanceUpgrade {
		filled, err := configured(parsed, config)
		if err != nil && !fault.Is(err, fault.ConfigInvalid) {
			return err
		}
		v.misfit = err
		if err == nil {
			config = filled
		}
	}
	v.Target, v.Next = stored, parsed
	v.To = &operation.Version{ManifestID: stored.ID, Version: stored.Version, Config: config}
	if v.Kind == lifecycle.InstanceUpgrade && v.misfit == nil && stored.ID == v.Stored.ID &&
		sameJSON(config, v.Instance.Config) {
		return fault.New(fault.FailedPrecondition, "the instance runs version %s with this config already",
			stored.Version).
			At("input.version")
	}
	return nil
}

// configured returns the config with the schema's defaults: CONFIG_INVALID when it does not fit the schema.
func configured(m *manifest.Manifest, config []byte) ([]byte, error) {
	filled, err := manifest.ApplyDefaults(m.ConfigSchema, config)
	if refused := fault.From(err); err != nil && refused.Code != fault.ConfigInvalid {
		return nil, err
	} else if err != nil {
		return nil, misconfigured(refused.Reasons)
	}
	if reasons := manifest.ValidateConfig(m.ConfigSchema, filled); len(reasons) > 0 {
		return nil, misconfigured(reasons)
	}
	return filled, nil
}

func misconfigured(reasons []fault.Reason) error {
	return fault.New(fault.ConfigInvalid, "the configuration does not fit the app's schema").
		With(fault.Prefixed("input", reasons)...)
}

// chooseGeneration finds a rollback's target. By default it is the generation before, or the present one when the
// newest change of version failed half-way.
func (v *Verdicts) chooseGeneration(ctx context.Context, t *tx.Tx) error {
	torn, err := torn(ctx, t, v.Instance.ID)
	if err != nil {
		return err
	}
	number := v.Instance.Generation
	if v.Generation != nil {
		number = *v.Generation
	} else if !torn {
		number--
	}
	if number == v.Instance.Generation && !torn {
		return fault.New(fault.FailedPrecondition, "the instance runs generation %d already", number).
			At("input.generation")
	}
	if number < 1 && v.Generation == nil {
		return fault.New(fault.FailedPrecondition, "generation %d is the first one: nothing earlier to roll back to",
			v.Instance.Generation).At("input.generation")
	}
	wanted, err := t.Generation.Query().Where(dbgeneration.InstanceID(v.Instance.ID), dbgeneration.Number(number)).
		Only(ctx)
	if db.IsNotFound(err) {
		return fault.New(fault.NotFound, "the instance has no generation %d", number).At("input.generation")
	}
	if err != nil {
		return fmt.Errorf("load generation %d of %s: %w", number, v.Instance.ID, err)
	}
	return v.leadBack(ctx, t, wanted)
}

// leadBack leads to exactly the generation's manifest and config. A deprecated version is accepted, a retired one not.
func (v *Verdicts) leadBack(ctx context.Context, t *tx.Tx, wanted *db.Generation) error {
	stored, err := t.Manifest.Get(ctx, wanted.ManifestID)
	if err != nil {
		return fmt.Errorf("load manifest %s: %w", wanted.ManifestID, err)
	}
	if err := hold(ctx, t, stored); err != nil {
		return err
	}
	if stored.Stage == lifecycle.StageRetired {
		return fault.New(fault.FailedPrecondition, "version %s is retired", stored.Version).At("input.generation")
	}
	return v.lead(stored, wanted.Config)
}

// torn reports whether the instance's newest change of version ended without success, so that parts of the instance may
// run its target.
func torn(ctx context.Context, t *tx.Tx, instanceID ids.ID) (bool, error) {
	last, err := t.Operation.Query().Where(dboperation.InstanceID(instanceID),
		dboperation.KindIn(lifecycle.InstanceUpgrade, lifecycle.InstanceRollback)).Order(db.Desc(dboperation.FieldID)).
		First(ctx)
	if db.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find the newest change of version: %w", err)
	}
	return last.EndedAt != nil && last.State != lifecycle.OperationSucceeded && last.DispatchAttempt > 0, nil
}

// versionFits checks the instance as it is against the version that the change leads to.
func (v *Verdicts) versionFits() error {
	if v.Target.AdapterName != v.Instance.RuntimeBackend {
		return fault.New(fault.Incompatible, "version %s is run by adapter %q, and the instance by %q",
			v.Target.Version, v.Target.AdapterName, v.Instance.RuntimeBackend).
			At("input.version")
	}
	if v.Next.PermissionFamily != v.Instance.PermissionFamily {
		return fault.New(fault.Incompatible, "version %s has another permission family", v.Target.Version).
			At("input.version")
	}
	if reasons := v.countsFit(); len(reasons) > 0 {
		return fault.New(fault.Incompatible, "the instance's members do not fit version %s", v.Target.Version).
			With(reasons...)
	}
	if reasons := v.rebuilt(); len(reasons) > 0 {
		return fault.New(fault.Incompatible, "the isolation of the instance's members does not fit version %s",
			v.Target.Version).
			With(reasons...)
	}
	if reasons := change.KeptVolumes(v.Instance.Volumes, v.Next); len(reasons) > 0 {
		return fault.New(fault.Incompatible, "the volumes of the instance do not fit version %s", v.Target.Version).
			With(reasons...)
	}
	if v.misfit != nil {
		return v.misfit
	}
	return v.fits(v.Next, nil)
}

// countsFit checks the desired members against the new version's components.
func (v *Verdicts) countsFit() []fault.Reason {
	wanted := make(map[string]int, len(v.Wanted))
	for _, component := range v.Next.Components {
		wanted[component.Key] = 0
	}
	for key, count := range v.Wanted {
		if _, known := wanted[key]; known || count > 0 {
			wanted[key] = count
		}
	}
	_, reasons := manifest.Counts(v.Next, wanted)
	slices.SortFunc(reasons, func(a, b fault.Reason) int { return strings.Compare(a.Path, b.Path) })
	for i, reason := range reasons {
		reasons[i].Message = strings.TrimPrefix(reason.Path, "components.") + " " + reason.Message
		reasons[i].Path = "input.version"
	}
	return reasons
}
