package lifecycle

// PolicyScope is the level that a policy overlay belongs to.
type PolicyScope string

// The levels, widest first; a lower one only narrows.
const (
	PolicyPlatform PolicyScope = "PLATFORM"
	PolicyTenant   PolicyScope = "TENANT"
	PolicyProject  PolicyScope = "PROJECT"
)

// Values lists every PolicyScope as it is stored and published.
func (PolicyScope) Values() []string { return names(PolicyPlatform, PolicyTenant, PolicyProject) }

// ShareStatus is the state of the offer of a shared control plane to a project.
type ShareStatus string

// The states of a share. DECLINED, WITHDRAWN and DETACHED are its ends.
const (
	ShareOffered   ShareStatus = "OFFERED"
	ShareAttached  ShareStatus = "ATTACHED"
	ShareDeclined  ShareStatus = "DECLINED"
	ShareWithdrawn ShareStatus = "WITHDRAWN"
	ShareDetached  ShareStatus = "DETACHED"
)

// Values lists every ShareStatus as it is stored and published.
func (ShareStatus) Values() []string {
	return names(ShareOffered, ShareAttached, ShareDeclined, ShareWithdrawn, ShareDetached)
}

var shareMachine = table[ShareStatus]{"share", ShareOffered, []Move[ShareStatus]{
	{ShareOffered, ShareAttached, "the other project accepted"},
	{ShareOffered, ShareDeclined, "the other project declined"},
	{ShareOffered, ShareWithdrawn, "the owner withdrew the offer"},
	{ShareAttached, ShareDetached, "either side ended it"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s ShareStatus) CanMove(to ShareStatus) error { return shareMachine.check(s, to) }

// Terminal reports whether no state follows.
func (s ShareStatus) Terminal() bool { return shareMachine.terminal(s) }

// SecretAudience is who may take delivery of a runtime secret.
type SecretAudience string

// The audiences.
const (
	SecretForNode    SecretAudience = "NODE"
	SecretForAdapter SecretAudience = "ADAPTER"
)

// Values lists every SecretAudience as it is stored and published.
func (SecretAudience) Values() []string { return names(SecretForNode, SecretForAdapter) }

// SecretDelivery is how often a runtime secret may be delivered.
type SecretDelivery string

// The deliveries.
const (
	DeliverOnce        SecretDelivery = "ONCE"
	DeliverUntilExpiry SecretDelivery = "UNTIL_EXPIRY"
)

// Values lists every SecretDelivery as it is stored and published.
func (SecretDelivery) Values() []string { return names(DeliverOnce, DeliverUntilExpiry) }

// WebhookStatus is whether a webhook is served.
type WebhookStatus string

// The states of a webhook. FAILING is one whose deliveries have failed for so long that it is not tried any more.
const (
	WebhookActive  WebhookStatus = "ACTIVE"
	WebhookPaused  WebhookStatus = "PAUSED"
	WebhookFailing WebhookStatus = "FAILING"
)

// Values lists every WebhookStatus as it is stored and published.
func (WebhookStatus) Values() []string {
	return names(WebhookActive, WebhookPaused, WebhookFailing)
}

// DeliveryState is the state of the delivery of an event to a webhook.
type DeliveryState string

// The states of a delivery. DEAD is one that was given up after its last try.
const (
	DeliveryPending   DeliveryState = "PENDING"
	DeliveryDelivered DeliveryState = "DELIVERED"
	DeliveryDead      DeliveryState = "DEAD"
)

// Values lists every DeliveryState as it is stored and published.
func (DeliveryState) Values() []string {
	return names(DeliveryPending, DeliveryDelivered, DeliveryDead)
}
