package adapter

import (
	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/sign"
)

// How a fetched artifact is placed.
const (
	// AsOCILayout is an OCI image layout in a folder, the default for images.
	AsOCILayout = contract.AsOCILayout
	// AsFiles is the files of its layers by their titles, in a folder: the default for other artifacts.
	AsFiles = contract.AsFiles
	// AsFile is the one file of a blob, the default for blobs.
	AsFile = contract.AsFile
)

// The operation kinds of contract v1.
const (
	InstanceCreate       = contract.InstanceCreate
	InstanceDecommission = contract.InstanceDecommission
	InstanceUpgrade      = contract.InstanceUpgrade
	InstanceRollback     = contract.InstanceRollback
	MembersAdd           = contract.MembersAdd
	MemberDrain          = contract.MemberDrain
	MemberCordon         = contract.MemberCordon
	MemberUncordon       = contract.MemberUncordon
	MemberLabel          = contract.MemberLabel
	MemberRemove         = contract.MemberRemove
	MemberReplace        = contract.MemberReplace
	MemberRecover        = contract.MemberRecover
)

// The states: accepted → running → succeeded | failed | canceled.
const (
	StateAccepted  = contract.StateAccepted
	StateRunning   = contract.StateRunning
	StateSucceeded = contract.StateSucceeded
	StateFailed    = contract.StateFailed
	StateCanceled  = contract.StateCanceled
)

// The member states an adapter may report.
const (
	MemberJoining  = contract.MemberJoining
	MemberActive   = contract.MemberActive
	MemberDraining = contract.MemberDraining
	MemberDrained  = contract.MemberDrained
	MemberRemoved  = contract.MemberRemoved
	MemberFailed   = contract.MemberFailed
)

// The judgements.
const (
	Healthy       = contract.Healthy
	Degraded      = contract.Degraded
	Unhealthy     = contract.Unhealthy
	HealthUnknown = contract.HealthUnknown
)

// The owners of a failure.
const (
	OwnerAdapter  = contract.OwnerAdapter
	OwnerPlatform = contract.OwnerPlatform
	OwnerUser     = contract.OwnerUser
	OwnerNode     = contract.OwnerNode
)

// The risks of an action.
const (
	RiskRead        = contract.RiskRead
	RiskWrite       = contract.RiskWrite
	RiskDestructive = contract.RiskDestructive
)

// The outcomes: stopped, past the point where stopping is safe, or not known (yet).
const (
	CancelDone    = contract.CancelDone
	CancelTooLate = contract.CancelTooLate
	CancelUnknown = contract.CancelUnknown
)

// The verdicts.
const (
	VerdictSafe    = contract.VerdictSafe
	VerdictUnsafe  = contract.VerdictUnsafe
	VerdictUnknown = contract.VerdictUnknown
)

// Codes of [ErrorBody] and [OperationError] that the kit itself uses.
const (
	CodeInvalid          = contract.CodeInvalid
	CodeUnauthorized     = contract.CodeUnauthorized
	CodeNotFound         = contract.CodeNotFound
	CodeTooLarge         = contract.CodeTooLarge
	CodeBodyMismatch     = contract.CodeBodyMismatch
	CodeStaleFence       = contract.CodeStaleFence
	CodeKeyReused        = contract.CodeKeyReused
	CodeUnsupported      = contract.CodeUnsupported
	CodeConfigInvalid    = contract.CodeConfigInvalid
	CodeRejected         = contract.CodeRejected
	CodeUnavailable      = contract.CodeUnavailable
	CodeInternal         = contract.CodeInternal
	CodeDeadline         = contract.CodeDeadline
	CodeCanceled         = contract.CodeCanceled
	CodeNodeTask         = contract.CodeNodeTask
	CodePlatform         = contract.CodePlatform
	CodePlansUnsupported = contract.CodePlansUnsupported
	CodeNodeUnreachable  = contract.CodeNodeUnreachable
)

// ErrCanceled is the cause of a run's context when the platform requested a cancel of the operation.
var ErrCanceled = contract.ErrCanceled

// Header names of the contract.
const (
	// HeaderCorrelation carries the correlation id of a request.
	HeaderCorrelation = contract.HeaderCorrelation
	// HeaderTraceparent carries the W3C trace context.
	HeaderTraceparent = contract.HeaderTraceparent
	// HeaderPlatformToken carries the public API token on requests that have no body for it.
	HeaderPlatformToken = contract.HeaderPlatformToken
)

// Bounds of the contract, in both directions unless one is named.
const (
	// MaxBody is the largest request or response body, in bytes.
	MaxBody = contract.MaxBody
	// MaxPage is the most operations in one page of the change feed.
	MaxPage = contract.MaxPage
	// MaxWait is the longest a change-feed request may wait.
	MaxWait = contract.MaxWait
	// MaxMembers is the most members in one dispatch or action.
	MaxMembers = contract.MaxMembers
	// MaxDetail is the largest detail object of one member, in bytes.
	MaxDetail = contract.MaxDetail
	// MaxSummary is how much of a component's summary is shown, in bytes.
	MaxSummary = contract.MaxSummary
	// MaxMessage is the longest message, in bytes; longer ones are cut.
	MaxMessage = contract.MaxMessage
	// MaxEvidence is the largest evidence object of one operation, in bytes.
	MaxEvidence = contract.MaxEvidence
	// MaxWork is the most pieces of work in one list of what is waited for or would be lost.
	MaxWork = contract.MaxWork
	// MaxReasons is the most reasons of one plan.
	MaxReasons = contract.MaxReasons
	// MaxUsageRecords is the most usage records in one page.
	MaxUsageRecords = contract.MaxUsageRecords
)

// AdapterPath is the path of the description.
const AdapterPath = contract.AdapterPath

// OperationsPath is the path of the change feed without its query.
const OperationsPath = contract.OperationsPath

// PlansPath is the path that plans an operation.
const PlansPath = contract.PlansPath

// MaxSealed is the largest value that can be sealed, in bytes.
const MaxSealed = contract.MaxSealed

// PurposeArtifactPull is the purpose of a secret that lets its taker pull one artifact of the manifest for some
// minutes.
const PurposeArtifactPull = api.PurposeArtifactPull

// TokenLife is how long a request token is valid.
const TokenLife = sign.TokenLife

// ErrSignature is what every refused request token wraps.
var ErrSignature = sign.ErrSignature

// The node task kinds.
const (
	TaskRun            = contract.TaskRun
	TaskWriteFile      = contract.TaskWriteFile
	TaskStartProcess   = contract.TaskStartProcess
	TaskStopProcess    = contract.TaskStopProcess
	TaskInspectProcess = contract.TaskInspectProcess
	TaskProbe          = contract.TaskProbe
	TaskFetchArtifact  = contract.TaskFetchArtifact
	TaskCloudInit      = contract.TaskCloudInit
	TaskResidue        = contract.TaskResidue
	TaskTeardown       = contract.TaskTeardown
)

// The node task states.
const (
	TaskPending   = contract.TaskPending
	TaskRunning   = contract.TaskRunning
	TaskSucceeded = contract.TaskSucceeded
	TaskFailed    = contract.TaskFailed
	TaskTimedOut  = contract.TaskTimedOut
	TaskCanceled  = contract.TaskCanceled
)

// ContractVersion is the newest version of the adapter contract this package speaks.
const ContractVersion = contract.ContractVersion

// AnyApp in place of a slug matches every app that the description does not name: the adapter runs what is published
// for it, by the manifest alone.
const AnyApp = contract.AnyApp
