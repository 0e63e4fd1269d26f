package change

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
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// chooseVersion finds what an upgrade or a rollback leads to.
func (c *Change) chooseVersion(ctx context.Context, t *tx.Tx) error {
	c.From = &operation.Version{ManifestID: c.Stored.ID, Version: c.Stored.Version, Config: c.Instance.Config}
	if c.Kind == lifecycle.InstanceRollback {
		return c.chooseGeneration(ctx, t)
	}
	return c.chooseManifest(ctx, t)
}

// chooseManifest finds an upgrade's version, held against promotion until the commit. A new version
// must be ACTIVE, or in a canary that has chosen the project; to stay with the present one it must not be
// retired.
func (c *Change) chooseManifest(ctx context.Context, t *tx.Tx) error {
	stored := c.Stored
	if c.Version != "" && c.Version != stored.Version {
		found, err := t.Manifest.Query().Where(dbmanifest.AppSlug(c.Instance.AppSlug), dbmanifest.Version(c.Version)).Only(ctx)
		if db.IsNotFound(err) {
			return fault.New(fault.NotFound, "app %q has no version %q", c.Instance.AppSlug, c.Version).At("input.version")
		}
		if err != nil {
			return fmt.Errorf("load a manifest: %w", err)
		}
		stored = found
	}
	if err := Hold(ctx, t, stored); err != nil {
		return err
	}
	if stays := stored.ID == c.Stored.ID; !stays || stored.Stage == lifecycle.StageRetired {
		if err := Enter(stored, c.Instance.ProjectID, "upgrade", "input.version"); err != nil {
			return err
		}
	}
	config := c.Config
	if config == nil {
		config = c.Instance.Config
	}
	return c.lead(stored, config)
}

// lead notes where the change leads. An upgrade's config gets the new schema's defaults; that it does
// not fit is for the manifest to say, later.
func (c *Change) lead(stored *db.Manifest, config []byte) error {
	parsed, err := manifest.Parse(stored.Document)
	if err != nil {
		return fmt.Errorf("read manifest %s: %w", stored.ID, err)
	}
	c.misfit = nil
	if c.Kind == lifecycle.InstanceUpgrade {
		filled, err := configured(parsed, config)
		if err != nil && !fault.Is(err, fault.ConfigInvalid) {
			return err
		}
		if c.misfit = err; err == nil {
			config = filled
		}
	}
	c.target, c.next = stored, parsed
	c.To = &operation.Version{ManifestID: stored.ID, Version: stored.Version, Config: config}
	if c.Kind == lifecycle.InstanceUpgrade && c.misfit == nil && stored.ID == c.Stored.ID && sameJSON(config, c.Instance.Config) {
		return fault.New(fault.FailedPrecondition, "the instance runs version %s with this config already", stored.Version).At("input.version")
	}
	return nil
}

// configured is the config with the schema's defaults, if it fits the schema.
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
	return fault.New(fault.ConfigInvalid, "the configuration does not fit the app's schema").With(fault.Prefixed("input", reasons)...)
}

// chooseGeneration finds a rollback's target. Left out, it is the one before, or the present one when
// the newest change of version has failed half-way.
func (c *Change) chooseGeneration(ctx context.Context, t *tx.Tx) error {
	torn, err := torn(ctx, t, c.Instance.ID)
	if err != nil {
		return err
	}
	number := c.Instance.Generation
	if c.Generation != nil {
		number = *c.Generation
	} else if !torn {
		number--
	}
	if number == c.Instance.Generation && !torn {
		return fault.New(fault.FailedPrecondition, "the instance runs generation %d already", number).At("input.generation")
	}
	if number < 1 && c.Generation == nil {
		return fault.New(fault.FailedPrecondition, "generation %d is the first one: there is none to go back to", c.Instance.Generation).At("input.generation")
	}
	wanted, err := t.Generation.Query().Where(dbgeneration.InstanceID(c.Instance.ID), dbgeneration.Number(number)).Only(ctx)
	if db.IsNotFound(err) {
		return fault.New(fault.NotFound, "the instance has no generation %d", number).At("input.generation")
	}
	if err != nil {
		return fmt.Errorf("load generation %d of %s: %w", number, c.Instance.ID, err)
	}
	return c.leadBack(ctx, t, wanted)
}

// leadBack leads to exactly the generation's manifest and config: deprecated will do, retired not.
func (c *Change) leadBack(ctx context.Context, t *tx.Tx, wanted *db.Generation) error {
	stored, err := t.Manifest.Get(ctx, wanted.ManifestID)
	if err != nil {
		return fmt.Errorf("load manifest %s: %w", wanted.ManifestID, err)
	}
	if err := Hold(ctx, t, stored); err != nil {
		return err
	}
	if stored.Stage == lifecycle.StageRetired {
		return fault.New(fault.FailedPrecondition, "version %s is retired", stored.Version).At("input.generation")
	}
	return c.lead(stored, wanted.Config)
}

// torn says whether the instance's newest change of version has ended without success, so that parts
// of it may run what it led to.
func torn(ctx context.Context, t *tx.Tx, instanceID ids.ID) (bool, error) {
	last, err := t.Operation.Query().Where(dboperation.InstanceID(instanceID),
		dboperation.KindIn(lifecycle.InstanceUpgrade, lifecycle.InstanceRollback)).Order(db.Desc(dboperation.FieldID)).First(ctx)
	if db.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the newest change of version: %w", err)
	}
	return last.EndedAt != nil && last.State != lifecycle.OperationSucceeded && last.DispatchAttempt > 0, nil
}

// versionFits holds the instance as it is against the version that it is led to.
func (c *Change) versionFits() error {
	if c.target.AdapterName != c.Instance.RuntimeBackend {
		return fault.New(fault.Incompatible, "version %s is run by adapter %q, and the instance by %q", c.target.Version, c.target.AdapterName, c.Instance.RuntimeBackend).
			At("input.version")
	}
	if c.next.PermissionFamily != c.Instance.PermissionFamily {
		return fault.New(fault.Incompatible, "version %s has another permission family", c.target.Version).At("input.version")
	}
	if reasons := c.countsFit(); len(reasons) > 0 {
		return fault.New(fault.Incompatible, "the instance's members do not fit version %s", c.target.Version).With(reasons...)
	}
	if c.misfit != nil {
		return c.misfit
	}
	return c.fits(c.next)
}

// countsFit holds the members asked for against the new version's components.
func (c *Change) countsFit() []fault.Reason {
	wanted := make(map[string]int, len(c.Wanted))
	for _, component := range c.next.Components {
		wanted[component.Key] = 0
	}
	for key, count := range c.Wanted {
		if _, known := wanted[key]; known || count > 0 {
			wanted[key] = count
		}
	}
	_, reasons := manifest.Counts(c.next, wanted)
	slices.SortFunc(reasons, func(a, b fault.Reason) int { return strings.Compare(a.Path, b.Path) })
	for i, reason := range reasons {
		reasons[i].Message = strings.TrimPrefix(reason.Path, "components.") + " " + reason.Message
		reasons[i].Path = "input.version"
	}
	return reasons
}
