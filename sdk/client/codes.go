package client

// The platform's catalogue of codes; a code never changes its meaning. Codes that occur only in reasons are listed
// in the platform's documentation.
const (
	// CodeUnauthenticated: no credential, or one that is unknown or revoked: log in, or send the key in the
	// Authorization header.
	CodeUnauthenticated = "UNAUTHENTICATED"
	// CodeTokenExpired: the credential was good once and has expired: get a new one.
	CodeTokenExpired = "TOKEN_EXPIRED"
	// CodePermissionRevoked: the right that a live subscription needs was revoked; the subscription has ended.
	CodePermissionRevoked = "PERMISSION_REVOKED"
	// CodeForbidden: the caller sees the object but lacks the permission key that the message names.
	CodeForbidden = "FORBIDDEN"
	// CodeNotEntitled: the project is not entitled to the app: ask a tenant admin to enable it.
	CodeNotEntitled = "NOT_ENTITLED"
	// CodeNotFound: the object does not exist, or the caller may not know of it.
	CodeNotFound = "NOT_FOUND"
	// CodeInvalidArgument: a field of the input is malformed, unknown or out of range; the reasons name it.
	CodeInvalidArgument = "INVALID_ARGUMENT"
	// CodeConfigInvalid: the configuration breaks the app's own JSON Schema; each reason names the field.
	CodeConfigInvalid = "CONFIG_INVALID"
	// CodeManifestInvalid: the manifest or its lint failed; each reason names the field.
	CodeManifestInvalid = "MANIFEST_INVALID"
	// CodeIncompatible: the app does not fit the allocations; each reason says why.
	CodeIncompatible = "INCOMPATIBLE"
	// CodeLimitExceeded: a count, size or quota is beyond its bound; the reason names bound and field.
	CodeLimitExceeded = "LIMIT_EXCEEDED"
	// CodeConflict: something else is under way on the same object; the reason names the operation in the way.
	CodeConflict = "CONFLICT"
	// CodeFailedPrecondition: the object's state does not allow this; the message names the state.
	CodeFailedPrecondition = "FAILED_PRECONDITION"
	// CodeIdempotencyKeyReused: the idempotency key was used before with other input: take a new key.
	CodeIdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED"
	// CodeStaleFence: the writer was superseded by a newer claim or dispatch; nothing was written.
	CodeStaleFence = "STALE_FENCE"
	// CodePlanStale: something that the plan relied on has changed since.
	CodePlanStale = "PLAN_STALE"
	// CodeCursorInvalid: the cursor is not one that this feed or list gave out.
	CodeCursorInvalid = "CURSOR_INVALID"
	// CodeCursorExpired: the cursor, or the task that is reported, is older than what is kept, or from another
	// generation of the database: start again without it.
	CodeCursorExpired = "CURSOR_EXPIRED"
	// CodeSlowConsumer: the subscriber read too slowly and was cut off: resume from the cursor given.
	CodeSlowConsumer = "SLOW_CONSUMER"
	// CodeDocumentInvalid: the GraphQL document does not parse or does not fit the schema.
	CodeDocumentInvalid = "DOCUMENT_INVALID"
	// CodeDocumentTooLarge: the GraphQL document is beyond a limit on bytes, tokens, depth, aliases or cost.
	CodeDocumentTooLarge = "DOCUMENT_TOO_LARGE"
	// CodeMessageTooLarge: the request body or socket message is beyond its bound of bytes.
	CodeMessageTooLarge = "MESSAGE_TOO_LARGE"
	// CodeRequestInvalid: the HTTP request or socket message is malformed.
	CodeRequestInvalid = "REQUEST_INVALID"
	// CodeMethodNotAllowed: this HTTP method is not served here.
	CodeMethodNotAllowed = "METHOD_NOT_ALLOWED"
	// CodeNotAcceptable: none of the media types that the request accepts can be produced.
	CodeNotAcceptable = "NOT_ACCEPTABLE"
	// CodeUnsupportedMediaType: the request's content type is not one that is read here.
	CodeUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	// CodeRateLimited: too many requests: slow down.
	CodeRateLimited = "RATE_LIMITED"
	// CodeCapacityUnavailable: no node has the free capacity for this now.
	CodeCapacityUnavailable = "CAPACITY_EXHAUSTED"
	// CodeUnavailable: the platform or a part of it is starting, stopping or overloaded.
	CodeUnavailable = "UNAVAILABLE"
	// CodeDeadlineExceeded: the work did not end before its deadline.
	CodeDeadlineExceeded = "DEADLINE_EXCEEDED"
	// CodeCanceled: the work was canceled.
	CodeCanceled = "CANCELED"
	// CodeAdapterRejected: the app's adapter refused this for the reason that the message gives.
	CodeAdapterRejected = "ADAPTER_REJECTED"
	// CodeAdapterFailed: the app's adapter tried and failed; the message is the adapter's.
	CodeAdapterFailed = "ADAPTER_FAILED"
	// CodeAdapterInvalid: the app's adapter answered outside its contract.
	CodeAdapterInvalid = "ADAPTER_INVALID"
	// CodeAdapterUnavailable: the app's adapter cannot be reached just now.
	CodeAdapterUnavailable = "ADAPTER_UNAVAILABLE"
	// CodeRuntimeMissing: the node can start no member: its container runtime is missing or does not work. Install it,
	// or take another node.
	CodeRuntimeMissing = "RUNTIME_MISSING"
	// CodeRuntimeTooOld: the node's container runtime or operating system is older than what members need; the message
	// names both versions. Upgrade it.
	CodeRuntimeTooOld = "RUNTIME_TOO_OLD"
	// CodeClassUnavailable: the node does not offer the isolation class that app or policy demand: take an allocation
	// that demands it.
	CodeClassUnavailable = "ISOLATION_UNAVAILABLE"
	// CodeProfileUnavailable: the node does not offer the profile that the app's members need: take an allocation that
	// demands it.
	CodeProfileUnavailable = "PROFILE_UNAVAILABLE"
	// CodeDeviceNotAllocated: the device is not one of the member's allocation; a member gets the devices of its
	// allocation and no others.
	CodeDeviceNotAllocated = "DEVICE_NOT_ALLOCATED"
	// CodeDeviceMissing: a device of the allocation is not on its node any more: repair the node, or take another
	// allocation.
	CodeDeviceMissing = "DEVICE_MISSING"
	// CodeMemberIDsExhausted: the node has no range of ids left for another member: remove members there, or give its
	// agent more ranges.
	CodeMemberIDsExhausted = "MEMBER_IDS_EXHAUSTED"
	// CodeVolumeUnavailable: the member's node cannot serve a volume, as the message says: take an allocation on a node
	// that serves it.
	CodeVolumeUnavailable = "VOLUME_UNAVAILABLE"
	// CodeAddressesExhausted: no address or range is free for another member: remove members, or start the platform
	// with a larger --member-addresses or --member-ranges.
	CodeAddressesExhausted = "ADDRESSES_EXHAUSTED"
	// CodeAdapterInsecure: the adapter's address is not on the loopback, and nothing would prove its identity: register
	// an https address with its authority.
	CodeAdapterInsecure = "ADAPTER_INSECURE"
	// CodeDialRefused: the operator does not allow the platform to dial the address.
	CodeDialRefused = "DIAL_REFUSED"
	// CodeArtifactUnavailable: an artifact is not in its registry under the pinned digest.
	CodeArtifactUnavailable = "ARTIFACT_UNAVAILABLE"
	// CodeDigestMismatch: the bytes do not match their digest: truncated, swapped or corrupted; none of them were kept.
	CodeDigestMismatch = "DIGEST_MISMATCH"
	// CodeSourceUnknown: no artifact source that the caller may use covers this address: register one, or name another.
	CodeSourceUnknown = "SOURCE_UNKNOWN"
	// CodeSignatureMissing: the artifact has no signature, and its source requires one.
	CodeSignatureMissing = "SIGNATURE_MISSING"
	// CodeSignatureUntrusted: none of the artifact's signatures is by a key that its source trusts now; the reasons say
	// what each lacks.
	CodeSignatureUntrusted = "SIGNATURE_UNTRUSTED"
	// CodeArtifactQuarantined: the artifact is in quarantine and cannot be fetched; the message says why.
	CodeArtifactQuarantined = "ARTIFACT_QUARANTINED"
	// CodeEvidenceMissing: the step or promotion lacks the evidence that it requires.
	CodeEvidenceMissing = "EVIDENCE_MISSING"
	// CodeReadinessFailed: the manifest's readiness probes, run by the node agents, do not pass.
	CodeReadinessFailed = "READINESS_FAILED"
	// CodeResidueLeft: the node agents still find processes, mounts or files of what was to be removed.
	CodeResidueLeft = "RESIDUE_LEFT"
	// CodeNodeUnreachable: the agent of a required node is not connected.
	CodeNodeUnreachable = "NODE_UNREACHABLE"
	// CodeTaskFailed: a node task ended without success; the message says how.
	CodeTaskFailed = "TASK_FAILED"
	// CodeControlPlaneInUse: other projects are attached to this control plane: detach them, or force with a reason.
	CodeControlPlaneInUse = "CONTROL_PLANE_IN_USE"
	// CodePolicyDenied: a policy overlay forbids this; each reason names the rule and its level.
	CodePolicyDenied = "POLICY_DENIED"
	// CodePolicyWidens: an overlay may only narrow the levels above it; each reason names the rule that would widen.
	CodePolicyWidens = "POLICY_WIDENS"
	// CodeLoginRefused: this platform refuses a person whom the identity provider knows; the message says why.
	CodeLoginRefused = "LOGIN_REFUSED"
	// CodeSecretSpent: the secret was delivered as often as is allowed, has expired or was revoked.
	CodeSecretSpent = "SECRET_SPENT"
	// CodePriceOverlap: another price of the same thing is valid within these times: choose other times.
	CodePriceOverlap = "PRICE_OVERLAP"
	// CodePriceMissing: the price book has no price in this currency: set one first, or name another currency.
	CodePriceMissing = "PRICE_MISSING"
	// CodePriceRetroactive: the price is for a time that has passed: plan a rerate instead.
	CodePriceRetroactive = "PRICE_RETROACTIVE"
	// CodeBudgetExceeded: a budget is too small for this: raise it, or release capacity.
	CodeBudgetExceeded = "BUDGET_EXCEEDED"
	// CodeBudgetBelowHeld: the budget would be less than what is already spent and reserved.
	CodeBudgetBelowHeld = "BUDGET_BELOW_HELD"
	// CodePeriodClosed: the billing period is closed: late usage goes on the next statement.
	CodePeriodClosed = "PERIOD_CLOSED"
	// CodeInternal: the platform failed; the correlation id finds the cause in its logs.
	CodeInternal = "INTERNAL"
)
