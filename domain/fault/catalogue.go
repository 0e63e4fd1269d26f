package fault

// Code names a kind of refusal; it is part of the public contract and never changes its meaning.
type Code string

// Codes that an error itself can carry.
const (
	Unauthenticated      Code = "UNAUTHENTICATED"
	TokenExpired         Code = "TOKEN_EXPIRED"
	PermissionRevoked    Code = "PERMISSION_REVOKED"
	Forbidden            Code = "FORBIDDEN"
	NotEntitled          Code = "NOT_ENTITLED"
	NotFound             Code = "NOT_FOUND"
	InvalidArgument      Code = "INVALID_ARGUMENT"
	ConfigInvalid        Code = "CONFIG_INVALID"
	ManifestInvalid      Code = "MANIFEST_INVALID"
	Incompatible         Code = "INCOMPATIBLE"
	LimitExceeded        Code = "LIMIT_EXCEEDED"
	Conflict             Code = "CONFLICT"
	FailedPrecondition   Code = "FAILED_PRECONDITION"
	IdempotencyKeyReused Code = "IDEMPOTENCY_KEY_REUSED"
	StaleFence           Code = "STALE_FENCE"
	PlanStale            Code = "PLAN_STALE"
	CursorInvalid        Code = "CURSOR_INVALID"
	CursorExpired        Code = "CURSOR_EXPIRED"
	SlowConsumer         Code = "SLOW_CONSUMER"
	DocumentInvalid      Code = "DOCUMENT_INVALID"
	DocumentTooLarge     Code = "DOCUMENT_TOO_LARGE"
	MessageTooLarge      Code = "MESSAGE_TOO_LARGE"
	RequestInvalid       Code = "REQUEST_INVALID"
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	NotAcceptable        Code = "NOT_ACCEPTABLE"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	RateLimited          Code = "RATE_LIMITED"
	CapacityUnavailable  Code = "CAPACITY_EXHAUSTED"
	Unavailable          Code = "UNAVAILABLE"
	DeadlineExceeded     Code = "DEADLINE_EXCEEDED"
	Canceled             Code = "CANCELED"
	AdapterRejected      Code = "ADAPTER_REJECTED"
	AdapterFailed        Code = "ADAPTER_FAILED"
	AdapterInvalid       Code = "ADAPTER_INVALID"
	AdapterUnavailable   Code = "ADAPTER_UNAVAILABLE"
	AdapterInsecure      Code = "ADAPTER_INSECURE"
	DialRefused          Code = "DIAL_REFUSED"
	ArtifactUnavailable  Code = "ARTIFACT_UNAVAILABLE"
	DigestMismatch       Code = "DIGEST_MISMATCH"
	SourceUnknown        Code = "SOURCE_UNKNOWN"
	SignatureMissing     Code = "SIGNATURE_MISSING"
	SignatureUntrusted   Code = "SIGNATURE_UNTRUSTED"
	ArtifactQuarantined  Code = "ARTIFACT_QUARANTINED"
	EvidenceMissing      Code = "EVIDENCE_MISSING"
	ReadinessFailed      Code = "READINESS_FAILED"
	ResidueLeft          Code = "RESIDUE_LEFT"
	NodeUnreachable      Code = "NODE_UNREACHABLE"
	TaskFailed           Code = "TASK_FAILED"
	PolicyDenied         Code = "POLICY_DENIED"
	PolicyWidens         Code = "POLICY_WIDENS"
	ControlPlaneInUse    Code = "CONTROL_PLANE_IN_USE"
	SecretSpent          Code = "SECRET_SPENT"
	LoginRefused         Code = "LOGIN_REFUSED"
	RuntimeMissing       Code = "RUNTIME_MISSING"
	RuntimeTooOld        Code = "RUNTIME_TOO_OLD"
	ClassUnavailable     Code = "ISOLATION_UNAVAILABLE"
	ProfileUnavailable   Code = "PROFILE_UNAVAILABLE"
	DeviceNotAllocated   Code = "DEVICE_NOT_ALLOCATED"
	DeviceMissing        Code = "DEVICE_MISSING"
	MemberIDsExhausted   Code = "MEMBER_IDS_EXHAUSTED"
	AddressesExhausted   Code = "ADDRESSES_EXHAUSTED"
	VolumeUnavailable    Code = "VOLUME_UNAVAILABLE"
	PriceOverlap         Code = "PRICE_OVERLAP"
	PriceMissing         Code = "PRICE_MISSING"
	PriceRetroactive     Code = "PRICE_RETROACTIVE"
	BudgetExceeded       Code = "BUDGET_EXCEEDED"
	BudgetBelowHeld      Code = "BUDGET_BELOW_HELD"
	PeriodClosed         Code = "PERIOD_CLOSED"
	Internal             Code = "INTERNAL"
)

// Codes that appear only in the reasons of an error with another code.
const (
	Required               Code = "REQUIRED"
	BadValue               Code = "BAD_VALUE"
	UnknownField           Code = "UNKNOWN_FIELD"
	UnknownValue           Code = "UNKNOWN_VALUE"
	Duplicate              Code = "DUPLICATE"
	TooLong                Code = "TOO_LONG"
	TooDeep                Code = "TOO_DEEP"
	NotPinned              Code = "NOT_PINNED"
	SchemaInvalid          Code = "SCHEMA_INVALID"
	KeyOutsideFamily       Code = "KEY_OUTSIDE_FAMILY"
	CountOutOfBounds       Code = "COUNT_OUT_OF_BOUNDS"
	UnknownComponent       Code = "UNKNOWN_COMPONENT"
	ShapeUnsupported       Code = "SHAPE_UNSUPPORTED"
	GPUCountTooLow         Code = "GPU_COUNT_TOO_LOW"
	NodeNotExclusive       Code = "NODE_NOT_EXCLUSIVE"
	NetworkSpanUnsupported Code = "NETWORK_SPAN_UNSUPPORTED"
	CapacityMissing        Code = "CAPACITY_MISSING"
	OperationInTheWay      Code = "OPERATION_IN_THE_WAY"
	PermissionMissing      Code = "PERMISSION_MISSING"
	RegionDenied           Code = "REGION_DENIED"
	SKUDenied              Code = "SKU_DENIED"
	SourceDenied           Code = "SOURCE_DENIED"
	AppDenied              Code = "APP_DENIED"
	VersionDenied          Code = "VERSION_DENIED"
	ModeDenied             Code = "MODE_DENIED"
	PurposeDenied          Code = "PURPOSE_DENIED"
	MembersCeiling         Code = "MEMBERS_CEILING"
	GPUsCeiling            Code = "GPUS_CEILING"
	InstancesCeiling       Code = "INSTANCES_CEILING"
	SpendingCeiling        Code = "SPENDING_CEILING"
	EntitlementLimit       Code = "ENTITLEMENT_LIMIT"
	NotInCanary            Code = "NOT_IN_CANARY"
	AccountLimit           Code = "ACCOUNT_LIMIT"
	ClassDenied            Code = "ISOLATION_DENIED"
	ProfileDenied          Code = "PROFILE_DENIED"
	StorageClassDenied     Code = "STORAGE_CLASS_DENIED"
	AccessDenied           Code = "ACCESS_DENIED"
	VolumesCeiling         Code = "VOLUMES_CEILING"
	VolumeInUse            Code = "VOLUME_IN_USE"
	PlatformFinal          Code = "PLATFORM_FINAL"
	CapacityUnit           Code = "CAPACITY_UNIT"
	DimensionUnknown       Code = "DIMENSION_UNKNOWN"
	DimensionRetired       Code = "DIMENSION_RETIRED"
	UsageQuantity          Code = "USAGE_QUANTITY"
	UsageInFuture          Code = "USAGE_IN_FUTURE"
	UsageBeforeInstance    Code = "USAGE_BEFORE_INSTANCE"
	UsageIDReused          Code = "USAGE_ID_REUSED"
	NodeCordoned           Code = "NODE_CORDONED"
	NodeCondition          Code = "NODE_CONDITION"
	CapacityShort          Code = "CAPACITY_SHORT"
	CapacityFits           Code = "CAPACITY_FITS"
)

// Entry is a code with what it means.
type Entry struct {
	// Code is the public name.
	Code Code
	// HTTP is the status of an HTTP answer that carries the code; 0 for codes that appear only in reasons.
	HTTP int
	// Retryable is the default of whether the same request may succeed later, unchanged.
	Retryable bool
	// Text says what the code means and what the caller can do, in one sentence.
	Text string
}

// catalogue is every code that may leave the platform, in the order of the documentation.
var catalogue = []Entry{
	{Unauthenticated, 401, false,
		"No credential, or one that is unknown or revoked: log in, or send the key in the Authorization header."},
	{TokenExpired, 401, false, "The credential has expired: get a new one."},
	{PermissionRevoked, 403, false,
		"The permission that a live subscription was opened with was revoked; the subscription has ended."},
	{Forbidden, 403, false, "The caller sees the object but lacks the permission key that the message names."},
	{NotEntitled, 403, false, "The project is not entitled to the app: ask a tenant admin to enable it."},
	{NotFound, 404, false, "The object does not exist, or the caller may not see it."},
	{InvalidArgument, 400, false, "A field of the input is malformed, unknown or out of range; the reasons name it."},
	{ConfigInvalid, 422, false, "The configuration breaks the app's own JSON Schema; each reason names the field."},
	{ManifestInvalid, 422, false, "The manifest or its lint failed; each reason names the field."},
	{Incompatible, 422, false, "The app does not fit the allocations; each reason says why."},
	{LimitExceeded, 422, false, "A count, size or quota is beyond its bound; the reason names bound and field."},
	{Conflict, 409, true, "Something else is under way on the same object; the reason names the operation in the way."},
	{FailedPrecondition, 412, false, "The object's state does not allow this; the message names the state."},
	{IdempotencyKeyReused, 409, false, "The idempotency key was used before with other input: take a new key."},
	{StaleFence, 409, false, "The writer was superseded by a newer claim or dispatch; nothing was written."},
	{PlanStale, 409, false,
		"Something that the plan depends on has changed since: plan again, review it, and send the new hash."},
	{CursorInvalid, 400, false, "The cursor was not issued by this feed or list."},
	{CursorExpired, 410, false,
		"The cursor, or the reported task, is older than what is kept or of another generation of the database: " +
			"start again without it."},
	{SlowConsumer, 503, true, "The subscriber read too slowly and was cut off: resume from the cursor given."},
	{DocumentInvalid, 400, false, "The GraphQL document does not parse or does not fit the schema."},
	{DocumentTooLarge, 413, false, "The GraphQL document is beyond a limit on bytes, tokens, depth, aliases or cost."},
	{MessageTooLarge, 413, false, "The request body or socket message is beyond its bound of bytes."},
	{RequestInvalid, 400, false, "The HTTP request or socket message is malformed."},
	{MethodNotAllowed, 405, false, "This HTTP method is not served here."},
	{NotAcceptable, 406, false, "None of the media types that the request accepts can be produced."},
	{UnsupportedMediaType, 415, false, "The request's content type is not supported."},
	{RateLimited, 429, true, "Too many requests: slow down."},
	{CapacityUnavailable, 503, true, "No node has the capacity for this now."},
	{Unavailable, 503, true, "The platform or a part of it is starting, stopping or overloaded."},
	{DeadlineExceeded, 504, true, "The work did not end before its deadline."},
	{Canceled, 409, false, "The work was canceled."},
	{AdapterRejected, 422, false, "The app's adapter refused this for the reason that the message gives."},
	{AdapterFailed, 502, false, "The app's adapter tried and failed; the message is the adapter's."},
	{AdapterInvalid, 502, false, "The answer of the app's adapter violates the adapter contract."},
	{AdapterUnavailable, 503, true, "The app's adapter cannot be reached now."},
	{AdapterInsecure, 422, false,
		"The adapter is not on loopback, and nothing proves its identity: register an https address with its " +
			"certificate authority."},
	{DialRefused, 422, false, "The operator does not allow connections to this address."},
	{ArtifactUnavailable, 422, false, "An artifact is not in its registry under the pinned digest."},
	{DigestMismatch, 422, false,
		"The bytes do not match their digest: truncated, swapped or corrupted; none of them were kept."},
	{SourceUnknown, 422, false,
		"No artifact source that the caller may use covers this address: register one, or name another."},
	{SignatureMissing, 422, false, "The artifact has no signature, and its source requires one."},
	{SignatureUntrusted, 422, false,
		"None of the artifact's signatures is by a key that its source trusts now; the reasons say what each lacks."},
	{ArtifactQuarantined, 412, false, "The artifact is in quarantine and is not delivered; the message says why."},
	{EvidenceMissing, 422, false, "The step or promotion lacks the evidence that it requires."},
	{ReadinessFailed, 409, true, "The manifest's readiness probes, run by the node agents, do not pass."},
	{ResidueLeft, 409, true, "The node agents still find processes, mounts or files of what was to be removed."},
	{NodeUnreachable, 503, true, "The agent of a node that is needed is not connected."},
	{TaskFailed, 422, false, "A node task ended without success; the message says how."},
	{PolicyDenied, 403, false,
		"A policy overlay forbids this; each reason names the rule and the level that it belongs to."},
	{PolicyWidens, 422, false,
		"An overlay may only narrow the levels above it; each reason names the rule that would widen them."},
	{ControlPlaneInUse, 412, false,
		"Other projects are attached to this control plane: detach them, or force with a reason."},
	{SecretSpent, 410, false, "The secret was delivered as often as it may be, has expired or was revoked."},
	{LoginRefused, 403, false,
		"The identity provider knows the person, but this platform does not admit them; the message says why."},
	{RuntimeMissing, 503, true,
		"The node can start no member: its container runtime is missing or fails. Install it, or use another node."},
	{RuntimeTooOld, 503, true,
		"The node's container runtime or operating system is older than what members need; the message names both " +
			"versions. Upgrade it."},
	{ClassUnavailable, 422, false,
		"The node does not offer the isolation class that app or policy demand: use an allocation that demands it."},
	{ProfileUnavailable, 422, false,
		"The node does not offer the profile that the app's members need: use an allocation that demands it."},
	{DeviceNotAllocated, 403, false,
		"The device is not one of the member's allocation; a member gets the devices of its allocation and no others."},
	{DeviceMissing, 503, true,
		"A device of the allocation is not on its node any more: repair the node, or use another allocation."},
	{MemberIDsExhausted, 503, true,
		"The node has no range of ids left for another member: remove members there, or give its agent more ranges."},
	{VolumeUnavailable, 422, false,
		"The member's node cannot provide a volume; the message says why: use an allocation on a node that serves it."},
	{AddressesExhausted, 503, true,
		"No address or range is free for another member: remove members, or start the platform with a larger " +
			"--member-addresses or --member-ranges."},
	{PriceOverlap, 409, false,
		"Another price for the same thing is valid within these times; the message names when. Choose other times."},
	{PriceMissing, 422, false, "The price book has no price in this currency: set one first, or name another " +
		"currency."},
	{PriceRetroactive, 422, false,
		"A price for a past time changes what is already booked: plan it as a rerate and send the plan's hash."},
	{BudgetExceeded, 422, false,
		"A budget does not cover this; the reasons name it, the amounts spent and held. Raise it or release capacity."},
	{BudgetBelowHeld, 422, false,
		"The budget would be less than what is already spent and held; the message names the least that it can be."},
	{PeriodClosed, 412, false, "The billing period is closed: late usage goes on the next statement; or reopen it."},
	{Internal, 500, false, "The platform failed; find the cause in its logs by the correlation id."},

	{Required, 0, false, "The field must be given."},
	{BadValue, 0, false, "The field's value has the wrong type, form or range."},
	{UnknownField, 0, false, "There is no field of this name."},
	{UnknownValue, 0, false, "The value is not one of those listed."},
	{Duplicate, 0, false, "The value is given twice where it must be unique."},
	{TooLong, 0, false, "The text, list or document is longer than its bound."},
	{TooDeep, 0, false, "The document nests deeper than its bound."},
	{NotPinned, 0, false, "The artifact is not pinned by a sha256 digest."},
	{SchemaInvalid, 0, false, "The JSON Schema does not compile, or refers to something outside of itself."},
	{KeyOutsideFamily, 0, false, "The permission key is not one of the manifest's permission family."},
	{CountOutOfBounds, 0, false, "The number of members is outside of the component's bounds."},
	{UnknownComponent, 0, false, "The manifest has no component of this key."},
	{ShapeUnsupported, 0, false, "The app does not run on this capacity shape."},
	{GPUCountTooLow, 0, false, "The allocation has fewer GPUs than the app needs."},
	{NodeNotExclusive, 0, false, "The app needs the whole node, and this allocation shares it."},
	{NetworkSpanUnsupported, 0, false, "The network of these allocations does not reach as far as the app needs."},
	{CapacityMissing, 0, false, "No allocation was given, or there are fewer of them than the app needs."},
	{OperationInTheWay, 0, true, "Another operation is under way on the object; the message names it."},
	{PermissionMissing, 0, false, "The caller lacks this permission key in this scope."},
	{RegionDenied, 0, false, "Policy does not allow the region."},
	{SKUDenied, 0, false, "Policy does not allow the SKU."},
	{SourceDenied, 0, false, "Policy does not allow artifacts from this source."},
	{AppDenied, 0, false, "Policy does not allow the app."},
	{VersionDenied, 0, false, "Policy or entitlement does not allow this version of the app."},
	{ModeDenied, 0, false, "Policy does not allow this operating mode or control-plane scope."},
	{PurposeDenied, 0, false, "The manifest does not declare this secret purpose, or policy does not allow it."},
	{MembersCeiling, 0, false, "Policy allows no more members."},
	{GPUsCeiling, 0, false, "Policy allows no more GPUs."},
	{InstancesCeiling, 0, false, "Policy allows no more instances."},
	{SpendingCeiling, 0, false, "The list price of all allocations would exceed what policy allows per hour."},
	{EntitlementLimit, 0, false, "The project's entitlement to the app allows no more."},
	{AccountLimit, 0, false, "The service account's own limits do not allow this."},
	{NotInCanary, 0, false, "The version is in a canary that this project is not part of, or that was halted."},
	{ClassDenied, 0, false, "Policy demands another isolation class for members."},
	{ProfileDenied, 0, false, "Policy does not allow this profile for members."},
	{StorageClassDenied, 0, false, "Policy does not allow the storage class."},
	{AccessDenied, 0, false, "Policy does not allow this way of access: exec, endpoints or logs."},
	{VolumesCeiling, 0, false, "Policy allows no more GiB of volumes."},
	{VolumeInUse, 0, true, "An instance uses the volume; the message names it and its slot."},
	{PlatformFinal, 0, false, "The platform forbids this for everyone; no overlay can allow it."},
	{CapacityUnit, 0, false, "The dimension counts capacity, which the platform meters itself: declare it of kind " +
		"showback, or count something else."},
	{DimensionUnknown, 0, false, "No manifest that the instance has run declares this usage dimension."},
	{DimensionRetired, 0, false, "The manifest that the instance ran at that time did not declare this usage " +
		"dimension any more."},
	{UsageQuantity, 0, false, "The quantity is not a decimal number in its bounds, or its sign does not fit the " +
		"record."},
	{UsageInFuture, 0, false, "The record is in the future: report usage after it has ended."},
	{UsageBeforeInstance, 0, false, "The record begins before its instance was created."},
	{UsageIDReused, 0, false, "A record with this id is stored with other content, and is kept: derive ids from what " +
		"is counted, and correct a record by one that retracts it."},
	{NodeCordoned, 0, true, "An operator keeps new members away from the node: use an allocation on another node."},
	{NodeCondition, 0, true,
		"A check of the node's agent keeps new members away; the message names it: use an allocation on another node."},
	{CapacityShort, 0, true, "What is missing: the request compared with the most that is free now."},
	{CapacityFits, 0, true, "What would fit now; another request may take it first."},
}

// Catalogue lists every code with its meaning, in the order of the documentation.
func Catalogue() []Entry { return append([]Entry(nil), catalogue...) }

// Lookup returns the catalogue's entry of the code; a code that is not in it is treated as INTERNAL.
func Lookup(code Code) Entry {
	for _, entry := range catalogue {
		if entry.Code == code {
			return entry
		}
	}
	return Entry{Code: code, HTTP: 500, Text: Lookup(Internal).Text}
}

// Known reports whether the code is in the catalogue.
func (c Code) Known() bool {
	for _, entry := range catalogue {
		if entry.Code == c {
			return true
		}
	}
	return false
}
