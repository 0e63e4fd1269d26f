package lifecycle

import "io"

// Values lists every PolicyScope as it is stored and published.
func (PolicyScope) Values() []string { return names(PolicyPlatform, PolicyTenant, PolicyProject) }

// MarshalGQL writes the value to a GraphQL answer.
func (s PolicyScope) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *PolicyScope) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every ShareStatus as it is stored and published.
func (ShareStatus) Values() []string {
	return names(ShareOffered, ShareAttached, ShareDeclined, ShareWithdrawn, ShareDetached)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s ShareStatus) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *ShareStatus) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every SecretAudience as it is stored and published.
func (SecretAudience) Values() []string { return names(SecretForNode, SecretForAdapter) }

// MarshalGQL writes the value to a GraphQL answer.
func (s SecretAudience) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *SecretAudience) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every SecretDelivery as it is stored and published.
func (SecretDelivery) Values() []string { return names(DeliverOnce, DeliverUntilExpiry) }

// MarshalGQL writes the value to a GraphQL answer.
func (s SecretDelivery) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *SecretDelivery) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every WebhookStatus as it is stored and published.
func (WebhookStatus) Values() []string { return names(WebhookActive, WebhookPaused, WebhookFailing) }

// MarshalGQL writes the value to a GraphQL answer.
func (s WebhookStatus) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *WebhookStatus) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every DeliveryState as it is stored and published.
func (DeliveryState) Values() []string {
	return names(DeliveryPending, DeliveryDelivered, DeliveryDead)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s DeliveryState) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *DeliveryState) UnmarshalGQL(v any) error { return readGQL(s, v) }
