package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/rig/stack/prices"
	"github.com/gpuaas/app-platform/rig/stack/storage"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Demo is what a fresh installation is seeded with, all of it through the public API.
type Demo struct {
	TenantID, ProjectID string
	// LabProjectID is where manifests are smoke-tested.
	LabProjectID string
	// PlatformTenantID is the platform's tenant, SystemProjectID its project for system apps and adapters' accounts.
	PlatformTenantID, SystemProjectID string
	// SystemLabProjectID is the platform's own project where manifests of system apps are smoke-tested.
	SystemLabProjectID string
	// OperatorID is the platform's first operator.
	OperatorID string
	// AdminID, MemberID and ViewerID are people of the tenant.
	AdminID, MemberID, ViewerID string
	// ServiceAccountKey is the key of the project's automation.
	ServiceAccountKey string
	// PublisherProjectID is a project that apps may be given to, and PublisherKey the key of the service account there
	// that takes them the whole way.
	PublisherProjectID, PublisherKey string
}

// automationKeys is what the demo's service account may do: run apps from end to end.
var automationKeys = []string{
	"project.read", "allocation.read", "allocation.create", "allocation.release",
	"operation.read", "operation.cancel", "operation.retry", "usage.read", "volume.files.read", "volume.files.write",
	"manifest.read", "artifact.read", "volume.read", "volume.create", "volume.update", "volume.delete", "volume.use",
	"apps.catalog.read", "apps.instance.read", "apps.instance.create", "apps.instance.update", "apps.instance.delete",
	"apps.node.read", "apps.node.operate",
	"apps.member.add", "apps.member.remove", "apps.member.replace", "apps.member.recover",
	"apps.queue.submit", "apps.queue.read", "apps.queue.cancel",
	"scheduler.catalog.read", "scheduler.instance.read", "scheduler.instance.create", "scheduler.instance.update",
	"scheduler.instance.delete",
	"scheduler.queue.submit", "scheduler.queue.read", "scheduler.queue.cancel", "scheduler.node.read",
	"scheduler.node.operate",
	"scheduler.member.add", "scheduler.member.remove", "scheduler.member.replace", "scheduler.member.recover",
}

// publisherKeys are what a publisher's service account may do: add apps and adapters to its project's sandbox, publish
// artifacts and manifests, take them from stage to stage, and run what it publishes.
var publisherKeys = []string{
	"project.read", "source.read", "artifact.read", "artifact.publish", "artifact.promote", "manifest.read",
	"manifest.publish", "manifest.smoke", "manifest.promote",
	"operation.read", "operation.cancel", "allocation.read", "allocation.create", "allocation.release",
	"apps.catalog.read", "apps.instance.read", "apps.instance.create", "apps.instance.update", "apps.instance.delete",
	"apps.node.read", "apps.node.operate", "apps.queue.read",
	"scheduler.catalog.read", "scheduler.instance.read", "scheduler.instance.create", "scheduler.instance.delete",
	"scheduler.node.read",
}

// seed fills the demo tenant, publishes the apps, and runs those of the platform's own. Its keys are fixed, so that
// doing it again finds what is there.
func (s *Stack) seed(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.seedPeople, s.seedAccounts, s.seedPrices,
		storage.Seed(s.Operator), s.seedSource, s.seedRunner, s.seedPublisher} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.say("terms of promotion (smokes of artifacts, launches, time) are set aside for the reference apps "+
		"and for %s, which history and audit record: %s", PublisherApp, override)
	return s.publishAll(ctx)
}

func (s *Stack) seedTenants(ctx context.Context) error {
	tenant, err := gql.CreateTenant(ctx, s.Operator,
		gql.CreateTenantInput{Slug: "demo", DisplayName: "Demo", IdempotencyKey: "seed-tenant-demo"})
	if err != nil {
		return err
	}
	s.Demo.TenantID = tenant.CreateTenant.Id
	for _, project := range []struct {
		slug, name string
		into       *string
	}{{"main", "Main", &s.Demo.ProjectID}, {"lab", "Smoke lab", &s.Demo.LabProjectID},
		{"publishers", "Publishers", &s.Demo.PublisherProjectID}} {
		if *project.into, err = s.project(ctx, s.Demo.TenantID, project.slug, project.name); err != nil {
			return err
		}
	}
	viewer, err := gql.GetViewer(ctx, s.Operator)
	if err != nil {
		return err
	}
	s.Demo.OperatorID = viewer.Viewer.Actor.Id
	return s.grant(ctx, s.Demo.OperatorID, "project_admin", s.Demo.LabProjectID)
}

func (s *Stack) project(ctx context.Context, tenant, slug, name string) (string, error) {
	made, err := gql.CreateProject(ctx, s.Operator, gql.CreateProjectInput{TenantId: tenant, Slug: slug,
		DisplayName: name, IdempotencyKey: "seed-project-" + slug})
	if err != nil {
		return "", err
	}
	return made.CreateProject.Id, nil
}

func (s *Stack) seedPeople(ctx context.Context) error {
	for _, person := range []struct {
		email, name, role string
		into              *string
	}{
		{"admin@demo.local", "Dana Admin", "tenant_admin", &s.Demo.AdminID},
		{"member@demo.local", "Mo Member", "project_member", &s.Demo.MemberID},
		{"viewer@demo.local", "Vic Viewer", "project_viewer", &s.Demo.ViewerID},
	} {
		made, err := gql.CreateUser(ctx, s.Operator, gql.CreateUserInput{
			TenantId: s.Demo.TenantID, Email: person.email, DisplayName: person.name,
			IdempotencyKey: "seed-user-" + person.role,
		})
		if err != nil {
			return err
		}
		*person.into = made.CreateUser.Id
		project := s.Demo.ProjectID
		if person.role == "tenant_admin" {
			project = ""
		}
		if err := s.grant(ctx, *person.into, person.role, project); err != nil {
			return err
		}
	}
	return s.grant(ctx, s.Demo.AdminID, "project_admin", s.Demo.ProjectID)
}

// grant gives a role in a project, or in the whole tenant when none is named.
func (s *Stack) grant(ctx context.Context, subject, role, project string) error {
	input := gql.GrantRoleInput{SubjectId: subject, Role: role, ProjectId: project, Reason: "demo"}
	if project == "" {
		input.TenantId = s.Demo.TenantID
	}
	_, err := gql.GrantRole(ctx, s.Operator, input)
	return err
}

// seedAccounts makes the automation and the publisher.
func (s *Stack) seedAccounts(ctx context.Context) (err error) {
	s.Demo.ServiceAccountKey, err = s.account(ctx, s.Demo.ProjectID, "cluster-automation", automationKeys, s.KeyFile())
	if err != nil {
		return err
	}
	keys := publisherKeys
	if len(s.sandboxFlags(1)) > 0 {
		keys = append(slices.Clone(keys), "sandbox.manage")
	}
	s.Demo.PublisherKey, err = s.account(ctx, s.Demo.PublisherProjectID, "publisher", keys, s.PublisherKeyFile())
	return err
}

// account makes a service account and keeps its key in a file, as the API shows it only once.
func (s *Stack) account(ctx context.Context, project, name string, keys []string, file string) (string, error) {
	account, err := gql.CreateServiceAccount(ctx, s.Operator, gql.CreateServiceAccountInput{
		ProjectId: project, Name: name, PermissionKeys: keys, IdempotencyKey: "seed-" + name,
	})
	if err != nil {
		return "", err
	}
	kept, err := os.ReadFile(file) // #nosec G304 -- in the installation's own folder
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return string(kept), err
	}
	key, err := gql.CreateServiceAccountKey(ctx, s.Operator,
		gql.CreateServiceAccountKeyInput{ServiceAccountId: account.CreateServiceAccount.Id})
	if err != nil {
		return "", err
	}
	return key.CreateServiceAccountKey.Secret, os.WriteFile(file, []byte(key.CreateServiceAccountKey.Secret), 0o600)
}

// PublisherApp is the app that the publisher's project publishes: one without a version, until somebody tries the
// recipe.
const PublisherApp = "your-app"

// seedPublisher gives the publisher's project an app to publish, the right to test it, and a file with what its tools
// need.
func (s *Stack) seedPublisher(ctx context.Context) error {
	_, err := gql.CreateApp(ctx, s.Operator, gql.CreateAppInput{
		Slug: PublisherApp, DisplayName: "Your app", Summary: "Yours to publish: see examples/publish-ci.",
		PermissionFamily:   "apps",
		PublisherProjectId: s.Demo.PublisherProjectID, IdempotencyKey: "seed-app-" + PublisherApp,
	})
	if err != nil {
		return err
	}
	_, err = gql.SetPromotionTerms(ctx, s.Operator, gql.SetPromotionTermsInput{AppSlug: PublisherApp, Reason: override})
	if err != nil {
		return err
	}
	for _, project := range []string{s.Demo.PublisherProjectID, s.Demo.ProjectID} {
		if _, err := gql.GrantEntitlement(ctx, s.Operator, project, PublisherApp, nil, nil, ""); err != nil {
			return err
		}
	}
	registry, err := s.registry()
	if err != nil {
		return err
	}
	signing, err := os.ReadFile(s.SigningKeyFile())
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, one := range [][2]string{
		{"APPCTL_SERVER", s.URL}, {"APPCTL_PROJECT", s.Demo.PublisherProjectID}, {"APPCTL_TOKEN", s.Demo.PublisherKey},
		{"APPCTL_REGISTRY_USER", registry.User}, {"APPCTL_REGISTRY_PASSWORD", registry.Password},
		{"APPCTL_SIGNING_KEY", string(signing)}, {"REGISTRY", s.RegistryAddr() + "/tenants/demo"},
	} {
		fmt.Fprintf(&text, "export %s='%s'\n", one[0], strings.ReplaceAll(one[1], "'", `'\''`))
	}
	return os.WriteFile(s.PublisherEnvFile(), []byte(text.String()), 0o600)
}

// PublisherEnvFile holds what the publisher's tools need, as lines of a shell: the platform, the account's key, the
// registry's user and password, and the key to sign with.
func (s *Stack) PublisherEnvFile() string { return filepath.Join(s.config.Dir, "publisher.env") }

// KeyFile holds the demo service account's key.
func (s *Stack) KeyFile() string { return filepath.Join(s.config.Dir, "cluster-automation.key") }

// PublisherKeyFile holds the key of the publisher's service account.
func (s *Stack) PublisherKeyFile() string { return filepath.Join(s.config.Dir, "publisher.key") }

// LoginLink mints a one-time login for a person and answers the console's link and the code.
func (s *Stack) LoginLink(ctx context.Context, userID string) (url, code string, err error) {
	link, err := gql.CreateLoginLink(ctx, s.Operator, userID)
	if err != nil {
		return "", "", err
	}
	return link.CreateLoginLink.Url, link.CreateLoginLink.Code, nil
}

// As answers a client that is logged in as a person.
func (s *Stack) As(ctx context.Context, userID string) (*client.Client, error) {
	_, code, err := s.LoginLink(ctx, userID)
	if err != nil {
		return nil, err
	}
	return s.LogIn(ctx, code)
}

// Automation answers a client with the service account's key.
func (s *Stack) Automation() (*client.Client, error) {
	return client.New(s.URL, client.Options{Token: s.Demo.ServiceAccountKey})
}

// seedPrices fills the price book, where that is wanted.
func (s *Stack) seedPrices(ctx context.Context) error {
	if !s.config.DemoPrices {
		return nil
	}
	made, err := prices.Seed(ctx, s.Operator, nodeSKU)
	if made {
		s.say("the price book holds demonstration prices in %s: appctl prices book", prices.Currency)
	}
	return err
}
