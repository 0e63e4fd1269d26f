package stack

import (
	"context"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// adapterKeys are what a reference adapter's own account may do: act by the accounts that instances choose, no more.
var adapterKeys = []string{"adapter.act"}

// seedAdapters makes the platform's own tenant, and gives each reference adapter a service account of its own there. An
// earlier build of the server has neither.
func (s *Stack) seedAdapters(ctx context.Context) error {
	if s.earlier() {
		return nil
	}
	tenant, err := gql.CreateTenant(ctx, s.Operator, gql.CreateTenantInput{Slug: "platform", DisplayName: "Platform",
		Platform: true, IdempotencyKey: "seed-tenant-platform"})
	if err != nil {
		return err
	}
	s.Demo.PlatformTenantID = tenant.CreateTenant.Id
	for _, project := range []struct {
		slug, name string
		into       *string
	}{{"system", "System", &s.Demo.SystemProjectID}, {"system-lab", "Smoke lab", &s.Demo.SystemLabProjectID}} {
		if *project.into, err = s.project(ctx, s.Demo.PlatformTenantID, project.slug, project.name); err != nil {
			return err
		}
		if err := s.grant(ctx, s.Demo.OperatorID, "project_admin", *project.into); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(s.config.Dir, "adapters"), 0o700); err != nil {
		return err
	}
	s.accounts = make(map[string]string)
	for _, app := range s.config.Apps {
		if err := s.seedAdapter(ctx, app); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) seedAdapter(ctx context.Context, app App) error {
	name := adapterName(app)
	if _, err := s.account(ctx, s.Demo.SystemProjectID, name, adapterKeys, s.accountFile(app)); err != nil {
		return err
	}
	made, err := gql.CreateServiceAccount(ctx, s.Operator, gql.CreateServiceAccountInput{ // as account's
		ProjectId: s.Demo.SystemProjectID, Name: name, PermissionKeys: adapterKeys, IdempotencyKey: "seed-" + name,
	})
	if err != nil {
		return err
	}
	s.accounts[app.Controller] = made.CreateServiceAccount.Id
	return nil
}

// earlier reports whether the first server runs an earlier build.
func (s *Stack) earlier() bool { return len(s.config.Programs) > 0 && s.config.Programs[0] != "" }

// accountFile holds the key of an adapter's own account.
func (s *Stack) accountFile(app App) string {
	return filepath.Join(s.config.Dir, "adapters", adapterName(app)+".key")
}

// accountOf is the id of an adapter's own account; nil where it has none.
func (s *Stack) accountOf(app App) *string {
	if id, ok := s.accounts[app.Controller]; ok {
		return &id
	}
	return nil
}

// accountFlags give a controller the key of its account.
func (s *Stack) accountFlags(app App) []string {
	if s.accountOf(app) == nil {
		return nil
	}
	return []string{"--service-account-file", s.accountFile(app)}
}

// Release replaces the controller of an app by another build of it, at its address and on what it kept, and publishes
// the version that the program prints, the way every version takes. The servers run on.
func (s *Stack) Release(ctx context.Context, app App) error {
	if running := s.Controllers[app.Slug]; running != nil {
		if err := running.Stop(); err != nil {
			return err
		}
	}
	if err := s.StartController(ctx, app); err != nil {
		return err
	}
	return s.publish(ctx, app)
}
