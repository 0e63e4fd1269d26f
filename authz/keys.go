package authz

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Key is a permission key, as its place in the catalogue; the zero Key is not a permission and is never held. Places
// may change between builds: what is stored and published is the key's name.
type Key uint8

// The permission keys.
const (
	_ Key = iota
	TenantCreate
	TenantRead
	TenantUpdate
	ProjectCreate
	ProjectRead
	ProjectUpdate
	UserCreate
	UserRead
	UserUpdate
	ServiceAccountCreate
	ServiceAccountRead
	ServiceAccountUpdate
	ServiceAccountDelete
	ServiceAccountKeyCreate
	ServiceAccountKeyRevoke
	BindingRead
	BindingGrant
	BindingRevoke
	LoginLinkCreate
	AllocationRead
	AllocationCreate
	AllocationRelease
	VolumeRead
	VolumeCreate
	VolumeUpdate
	VolumeDelete
	VolumeFilesRead
	VolumeFilesWrite
	StorageClassManage
	EntitlementRead
	EntitlementManage
	AppManage
	ArtifactRead
	ArtifactPublish
	ArtifactPromote
	ManifestRead
	ManifestPublish
	ManifestSmoke
	ManifestPromote
	AdapterRead
	AdapterRegister
	AdapterAct
	SandboxManage
	NodeEnrol
	NodeRead
	NodeOperate
	NodeJoin
	NodeReport
	TaskRun
	TaskRead
	TaskInspect
	TaskExecute
	OperationRead
	OperationCancel
	OperationRetry
	OperationReport
	AuditRead
	ProjectQuotaManage
	SKUPriceManage
	ProjectDelete
	UserLogout
	ControlPlaneRead
	ControlPlaneCreate
	ControlPlaneOffer
	ControlPlaneAttach
	ControlPlaneDetach
	SecretRead
	SecretIssue
	SecretRedeem
	SecretRotate
	SecretRevoke
	WebhookRead
	WebhookManage
	AuditVerify
	BreakGlassUse
	SourceRead
	SourceManage
	ArtifactQuarantine
	RunnerManage
	PolicyRead
	PolicyManage
	UsageRead
	UsageReport
	BillingRead
	BillingManage
	BudgetManage
	VolumeUse
	GapRead
	GapRaise
	GapDecide
	AppsCatalogRead
	AppsInstanceRead
	AppsInstanceCreate
	AppsInstanceUpdate
	AppsInstanceDelete
	AppsQueueSubmit
	AppsQueueRead
	AppsQueueCancel
	AppsNodeRead
	AppsNodeOperate
	AppsMemberAdd
	AppsMemberRemove
	AppsMemberReplace
	AppsMemberRecover
	AppsMemberLogs
	AppsMemberExec
	SchedulerCatalogRead
	SchedulerInstanceRead
	SchedulerInstanceCreate
	SchedulerInstanceUpdate
	SchedulerInstanceDelete
	SchedulerQueueSubmit
	SchedulerQueueRead
	SchedulerQueueCancel
	SchedulerNodeRead
	SchedulerNodeOperate
	SchedulerMemberAdd
	SchedulerMemberRemove
	SchedulerMemberReplace
	SchedulerMemberRecover
	SchedulerMemberLogs
	SchedulerMemberExec
)

// KeyEntry describes a key of the catalogue.
type KeyEntry struct {
	// Name is the key, such as "apps.instance.create".
	Name string
	// Description says what it allows, in one sentence.
	Description string
}

// catalogue is every key by its place.
var catalogue = [...]KeyEntry{
	TenantCreate:  {"tenant.create", "Create a tenant."},
	TenantRead:    {"tenant.read", "See a tenant."},
	TenantUpdate:  {"tenant.update", "Change a tenant's name and settings."},
	ProjectCreate: {"project.create", "Create a project in a tenant."},
	ProjectRead:   {"project.read", "See a project and its activity."},
	ProjectUpdate: {"project.update", "Change a project's name and settings."},
	UserCreate:    {"identity.user.create", "Add a person."},
	UserRead:      {"identity.user.read", "See the people of a tenant."},
	UserUpdate:    {"identity.user.update", "Change or disable a person."},
	ServiceAccountCreate: {"identity.service_account.create",
		"Create a service account with keys the creator holds."},
	ServiceAccountRead:      {"identity.service_account.read", "See service accounts and when their keys were used."},
	ServiceAccountUpdate:    {"identity.service_account.update", "Change what a service account may do."},
	ServiceAccountDelete:    {"identity.service_account.delete", "Delete a service account with its keys."},
	ServiceAccountKeyCreate: {"identity.service_account.key.create", "Create a key of a service account."},
	ServiceAccountKeyRevoke: {"identity.service_account.key.revoke", "Revoke a key of a service account."},
	BindingRead:             {"identity.binding.read", "See who holds which role."},
	BindingGrant:            {"identity.binding.grant", "Give a role; at platform scope, the root of all authority."},
	BindingRevoke:           {"identity.binding.revoke", "Take a role away."},
	LoginLinkCreate:         {"identity.login_link.create", "Create a one-time login link for a person."},
	AllocationRead:          {"allocation.read", "See the allocations of a project."},
	AllocationCreate:        {"allocation.create", "Rent capacity."},
	AllocationRelease:       {"allocation.release", "Give capacity back."},
	VolumeRead:              {"volume.read", "See the volumes of a project, and which instances use them."},
	VolumeCreate:            {"volume.create", "Create a volume."},
	VolumeUpdate:            {"volume.update", "Make a volume larger."},
	VolumeDelete:            {"volume.delete", "Delete a volume with its files."},
	VolumeFilesRead:         {"volume.files.read", "See the files of a volume, and download them."},
	VolumeFilesWrite:        {"volume.files.write", "Upload files to a volume, and delete them there."},
	StorageClassManage:      {"storage.class.manage", "Offer what nodes serve as a storage class, and change it."},
	EntitlementRead:         {"entitlement.read", "See which apps a project may launch."},
	EntitlementManage:       {"entitlement.manage", "Enable or disable an app for a project."},
	AppManage:               {"app.manage", "Create an app and change its catalog entry."},
	ArtifactRead:            {"artifact.read", "See artifacts and their stage."},
	ArtifactPublish:         {"artifact.publish", "Publish a digest-pinned artifact."},
	ArtifactPromote:         {"artifact.promote", "Move an artifact to another stage."},
	ManifestRead:            {"manifest.read", "See manifests of every stage."},
	ManifestPublish:         {"manifest.publish", "Publish a manifest."},
	ManifestSmoke:           {"manifest.smoke", "Record a smoke launch as evidence for a manifest."},
	ManifestPromote:         {"manifest.promote", "Move a manifest to another stage."},
	AdapterRead:             {"adapter.read", "See registered adapters."},
	AdapterRegister:         {"adapter.register", "Register an adapter's name and address."},
	AdapterAct:              {"adapter.act", "Act as an adapter, with the accounts that instances of its apps chose."},
	SandboxManage:           {"sandbox.manage", "Create apps and register adapters for one's own project only."},
	NodeEnrol:               {"node.enrol", "Create a one-time enrolment token for a node."},
	NodeRead:                {"node.read", "See the platform's nodes."},
	NodeOperate:             {"node.operate", "Cordon or retire a node of the platform."},
	NodeJoin:                {"node.join", "Turn an enrolment token into a node's credential."},
	NodeReport:              {"node.report", "Report a node's own heartbeat and renew its credential."},
	TaskRun:                 {"task.run", "Create tasks in the members of one's own instance."},
	TaskRead:                {"task.read", "See node tasks with their output."},
	RunnerManage:            {"runner.manage", "Register and revoke the runners whose reports count."},
	TaskInspect:             {"task.inspect", "Run the inspection commands of an instance's pinned manifest."},
	TaskExecute:             {"task.execute", "Take and report the tasks of one's own node."},
	OperationRead:           {"operation.read", "See operations with steps and evidence."},
	OperationCancel:         {"operation.cancel", "Request that a running operation stops."},
	OperationRetry:          {"operation.retry", "Send an operation to its adapter again."},
	OperationReport:         {"operation.report", "Report the progress of one's own operation."},
	AuditRead:               {"audit.read", "Read the audit log of the scope."},
	ProjectQuotaManage: {"project.quota.manage",
		"Bound how many members, GPUs and GiB of volumes a project may have."},
	SKUPriceManage: {"sku.price.manage", "Set the list price of a SKU."},
	ProjectDelete:  {"project.delete", "Delete an empty project; its credentials end at once."},
	UserLogout:     {"identity.user.logout", "End all sessions of a person."},
	ControlPlaneRead: {"control_plane.read",
		"See shared control planes, who is attached, and what a change of one would touch."},
	ControlPlaneCreate: {"control_plane.create", "Launch an instance whose control plane serves the whole tenant."},
	ControlPlaneOffer: {"control_plane.offer",
		"Offer a shared control plane to another project of the tenant, and take it back."},
	ControlPlaneAttach: {"control_plane.attach", "Accept or decline a shared control plane for a project."},
	ControlPlaneDetach: {"control_plane.detach", "Detach a project from a shared control plane."},
	SecretRead:         {"secret.read", "See which runtime secrets exist; never their values."},
	SecretIssue:        {"secret.issue", "Issue a runtime secret of an instance."},
	SecretRedeem:       {"secret.redeem", "Take delivery of a runtime secret that is bound to oneself."},
	SecretRotate:       {"secret.rotate", "Rotate a runtime secret."},
	SecretRevoke:       {"secret.revoke", "Revoke a runtime secret."},
	WebhookRead:        {"webhook.read", "See a project's webhooks and their deliveries."},
	WebhookManage:      {"webhook.manage", "Create, change, replay and delete a project's webhooks."},
	AuditVerify:        {"audit.verify", "Read the audit's hash chain and its signed checkpoints."},
	BreakGlassUse:      {"break_glass.use", "Use a break-glass mutation; always with a reason, flagged everywhere."},
	SourceRead:         {"source.read", "See where artifacts may come from, and whose signatures count there."},
	SourceManage: {"source.manage",
		"Add and change artifact sources, their credentials and trusted signer keys."},
	ArtifactQuarantine: {"artifact.quarantine", "Put an artifact in quarantine, and release it."},
	PolicyRead:         {"policy.read", "See policy overlays."},
	PolicyManage:       {"policy.manage", "Change policy overlays."},
	UsageRead:          {"usage.read", "See metered usage."},
	UsageReport:        {"usage.report", "Report metered usage of an instance."},
	BillingRead:        {"billing.read", "See costs."},
	BillingManage:      {"billing.manage", "Set how a tenant is billed, give it credit, and reopen its periods."},
	BudgetManage: {"budget.manage",
		"Set and remove budgets; of a tenant or a project on all of the tenant."},
	VolumeUse: {"volume.use",
		"Give volumes to instances that are launched, and with them all that is in the volumes."},
	GapRead:                 {"gap.read", "See what was found missing in the platform for one's apps."},
	GapRaise:                {"gap.raise", "Note what the platform lacks for an app of one's own."},
	GapDecide:               {"gap.decide", "Decide what the platform lacks for apps, and close it with a release."},
	AppsCatalogRead:         {"apps.catalog.read", "See the family's apps in the catalog."},
	AppsInstanceRead:        {"apps.instance.read", "See instances, members, their timeline and health."},
	AppsInstanceCreate:      {"apps.instance.create", "Launch an instance."},
	AppsInstanceUpdate:      {"apps.instance.update", "Upgrade or roll back an instance."},
	AppsInstanceDelete:      {"apps.instance.delete", "Decommission an instance."},
	AppsQueueSubmit:         {"apps.queue.submit", "Submit work to an app's queue."},
	AppsQueueRead:           {"apps.queue.read", "See an app's queue."},
	AppsQueueCancel:         {"apps.queue.cancel", "Cancel work in an app's queue."},
	AppsNodeRead:            {"apps.node.read", "See what an app reports about its members."},
	AppsNodeOperate:         {"apps.node.operate", "Drain, cordon, uncordon or label members."},
	AppsMemberAdd:           {"apps.member.add", "Add members."},
	AppsMemberRemove:        {"apps.member.remove", "Remove a member."},
	AppsMemberReplace:       {"apps.member.replace", "Replace a member."},
	AppsMemberRecover:       {"apps.member.recover", "Bootstrap a failed member again."},
	AppsMemberLogs:          {"apps.member.logs", "Read what a member's processes print."},
	AppsMemberExec:          {"apps.member.exec", "Run commands in a member, as its root."},
	SchedulerCatalogRead:    {"scheduler.catalog.read", "See the family's apps in the catalog."},
	SchedulerInstanceRead:   {"scheduler.instance.read", "See instances, members, their timeline and health."},
	SchedulerInstanceCreate: {"scheduler.instance.create", "Launch an instance."},
	SchedulerInstanceUpdate: {"scheduler.instance.update", "Upgrade or roll back an instance."},
	SchedulerInstanceDelete: {"scheduler.instance.delete", "Decommission an instance."},
	SchedulerQueueSubmit:    {"scheduler.queue.submit", "Submit work to an app's queue."},
	SchedulerQueueRead:      {"scheduler.queue.read", "See an app's queue."},
	SchedulerQueueCancel:    {"scheduler.queue.cancel", "Cancel work in an app's queue."},
	SchedulerNodeRead:       {"scheduler.node.read", "See what an app reports about its members."},
	SchedulerNodeOperate:    {"scheduler.node.operate", "Drain, cordon, uncordon or label members."},
	SchedulerMemberAdd:      {"scheduler.member.add", "Add members."},
	SchedulerMemberRemove:   {"scheduler.member.remove", "Remove a member."},
	SchedulerMemberReplace:  {"scheduler.member.replace", "Replace a member."},
	SchedulerMemberRecover:  {"scheduler.member.recover", "Bootstrap a failed member again."},
	SchedulerMemberLogs:     {"scheduler.member.logs", "Read what a member's processes print."},
	SchedulerMemberExec:     {"scheduler.member.exec", "Run commands in a member, as its root."},
}

// families are the permission families a manifest may name. Verbs and actions of an app require keys of its family.
var families = []string{"apps", "scheduler"}

// byName finds a key by its name.
var byName = func() map[string]Key {
	index := make(map[string]Key, len(catalogue))
	for _, key := range Keys() {
		index[key.String()] = key
	}
	return index
}()

// String is the key's name; the zero Key is "none".
func (k Key) String() string {
	if k == 0 || int(k) >= len(catalogue) {
		return "none"
	}
	return catalogue[k].Name
}

// Description says what the key allows.
func (k Key) Description() string {
	if int(k) >= len(catalogue) {
		return ""
	}
	return catalogue[k].Description
}

// Family is the permission family that the key belongs to; empty for the platform's own keys.
func (k Key) Family() string {
	if family, _, _ := strings.Cut(k.String(), "."); slices.Contains(families, family) {
		return family
	}
	return ""
}

// Keys lists every key in the order of the catalogue.
func Keys() []Key {
	keys := make([]Key, 0, len(catalogue)-1)
	for key := 1; key < len(catalogue); key++ {
		keys = append(keys, Key(key)) // #nosec G115 -- the catalogue has fewer than 256 keys, as a Mask holds no more
	}
	return keys
}

// ParseKey finds a key by its name; it fails with INVALID_ARGUMENT.
func ParseKey(name string) (Key, error) {
	if key, ok := byName[name]; ok {
		return key, nil
	}
	return 0, fault.New(fault.InvalidArgument, "%.80q is not a permission key", name)
}

// readKeys are the keys that let an actor know that things exist in a scope.
var readKeys = func() Mask {
	var mask Mask
	for _, key := range Keys() {
		if strings.HasSuffix(key.String(), ".read") {
			mask.add(key)
		}
	}
	return mask
}()
