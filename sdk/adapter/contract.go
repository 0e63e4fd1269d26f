package adapter

import "github.com/gpuaas/app-platform/sdk/adapter/contract"

// FetchArtifact brings an artifact onto the node, verified byte by byte against its digest, and places it in the
// member's file system.
type FetchArtifact = contract.FetchArtifact

// CloudInit applies cloud-init user data in the member, to its end, as a first boot would: exactly one of UserData and
// UserDataSealed.
type CloudInit = contract.CloudInit

// Fetched is the result of a FETCH_ARTIFACT task.
type Fetched = contract.Fetched

// CloudInitRun is the result of a CLOUD_INIT task, read from cloud-init's own report of its run.
type CloudInitRun = contract.CloudInitRun

// Kind is what an operation does.
type Kind = contract.Kind

// State is where an operation is at the adapter.
type State = contract.State

// MemberStatus is the state of a member an adapter may report.
type MemberStatus = contract.MemberStatus

// Health is the adapter's judgement of an instance or member.
type Health = contract.Health

// Owner is the party that has to repair a failure.
type Owner = contract.Owner

// Risk is how carefully a console must confirm an action before it runs it.
type Risk = contract.Risk

// CancelOutcome is the outcome of a request to cancel.
type CancelOutcome = contract.CancelOutcome

// Verdict is an adapter's judgement of an operation before it begins.
type Verdict = contract.Verdict

// Instance is what the adapter needs to know of an app instance.
type Instance = contract.Instance

// Artifact is something that a manifest pins by its digest.
type Artifact = contract.Artifact

// ComponentCount is the desired number of members of one component.
type ComponentCount = contract.ComponentCount

// ManifestApp is the part of an app manifest that the adapter of the app must agree with.
type ManifestApp = contract.ManifestApp

// Work is one piece of work of the app, such as a job: what a drain waits for, or what an operation would lose.
type Work = contract.Work

// PlanRequest requests a forecast of an operation: the body of POST /v1/plans.
type PlanRequest = contract.PlanRequest

// Choose is how many members of a component are to leave. The targets of its request are those that may.
type Choose = contract.Choose

// PlanAnswer is the adapter's forecast of an operation before it begins.
type PlanAnswer = contract.PlanAnswer

// PlanReason is one reason of a verdict.
type PlanReason = contract.PlanReason

// AddChange is the change of members.add.
type AddChange = contract.AddChange

// LabelChange is the change of member.label.
type LabelChange = contract.LabelChange

// ReplaceChange is the change of member.replace.
type ReplaceChange = contract.ReplaceChange

// VersionChange is the change of instance.upgrade and instance.rollback.
type VersionChange = contract.VersionChange

// VersionConfig is a version of an app with a configuration.
type VersionConfig = contract.VersionConfig

// SealedValue is what lies inside a sealed box.
type SealedValue = contract.SealedValue

// TaskKind is what a node task does.
type TaskKind = contract.TaskKind

// NodeTask is the details of one node task: one of the structs below, or one of sdk/nodetask.
type NodeTask = contract.NodeTask

// EnvVar is one environment variable: a plain value, a sealed one or a runtime secret's, never two of them.
type EnvVar = contract.EnvVar

// RunCommand runs a command to its end.
type RunCommand = contract.RunCommand

// WriteFile writes a file into the member's file system: one of Content, ContentBase64, Sealed or SecretRef.
type WriteFile = contract.WriteFile

// Restart says when a supervised process that ended is started again.
type Restart = contract.Restart

// StartProcess starts a supervised process, which must stay in the foreground.
type StartProcess = contract.StartProcess

// StopProcess stops a supervised process; one that is absent is a success.
type StopProcess = contract.StopProcess

// InspectProcess reads the state of a supervised process.
type InspectProcess = contract.InspectProcess

// ExecProbe succeeds when the command exits with 0.
type ExecProbe = contract.ExecProbe

// TCPProbe succeeds when the port accepts a connection.
type TCPProbe = contract.TCPProbe

// HTTPProbe succeeds when a GET is answered with the expected status.
type HTTPProbe = contract.HTTPProbe

// Probe checks that something answers, several times if need be: exactly one of Exec, TCP and HTTP.
type Probe = contract.Probe

// ResidueQuery lists everything of the member that is left on the node.
type ResidueQuery = contract.ResidueQuery

// Teardown stops everything of the member and deletes its sandbox.
type Teardown = contract.Teardown

// TaskSpec is one node task to run.
type TaskSpec = contract.TaskSpec

// TaskState is the state of a node task.
type TaskState = contract.TaskState

// TaskResult is how a node task ended.
type TaskResult = contract.TaskResult

// ProcessState is the state of a supervised process.
type ProcessState = contract.ProcessState

// Residue is everything of a member that is left on its node.
type Residue = contract.Residue

// ResidueProcess is a live process of a member.
type ResidueProcess = contract.ResidueProcess

// Description is what an adapter says about itself: the answer of GET /v1/adapter.
type Description = contract.Description

// AppInfo describes one app: its parts, what can be done with it and how it is configured.
type AppInfo = contract.AppInfo

// Component is one kind of member.
type Component = contract.Component

// Action is a verb of the app that the platform authorises, records and passes through.
type Action = contract.Action

// UsageDimension is one metered quantity.
type UsageDimension = contract.UsageDimension

// Dispatch is the request to carry out one operation: the body of PUT /v1/operations/{id}.
type Dispatch = contract.Dispatch

// Member is one realised part of an instance, bound to a node.
type Member = contract.Member

// Node is the node a member is bound to.
type Node = contract.Node

// Platform is how the adapter reaches the public API, with a token narrowed to this one task.
type Platform = contract.Platform

// Status is the state of an operation: the answer of GET /v1/operations/{id}.
type Status = contract.Status

// MemberUpdate is the adapter's report on one member.
type MemberUpdate = contract.MemberUpdate

// OperationError says why an operation failed and which party has to repair it.
type OperationError = contract.OperationError

// OperationsPage is a page of the change feed: the answer of GET /v1/operations.
type OperationsPage = contract.OperationsPage

// CancelRequest is the body of POST /v1/operations/{id}/cancel.
type CancelRequest = contract.CancelRequest

// CancelResult is the answer to a request to cancel.
type CancelResult = contract.CancelResult

// Observation is what the adapter sees of an instance now: the answer of GET /v1/instances/{id}.
type Observation = contract.Observation

// RoleObservation sums up the members of one component, in the app's own words.
type RoleObservation = contract.RoleObservation

// MemberObservation is what the adapter sees of one member now.
type MemberObservation = contract.MemberObservation

// ActionRequest is the body of POST /v1/instances/{id}/actions/{name}.
type ActionRequest = contract.ActionRequest

// Requester is the person or service account that called an action.
type Requester = contract.Requester

// PosixIdentity is an account of POSIX systems.
type PosixIdentity = contract.PosixIdentity

// MemberVolume is a volume that a member has.
type MemberVolume = contract.MemberVolume

// ActionResult is the answer of an action.
type ActionResult = contract.ActionResult

// ErrorBody is the body of every answer that is not a success.
type ErrorBody = contract.ErrorBody

// UsagePage is metered usage since a cursor: the answer of GET /v1/instances/{id}/usage.
type UsagePage = contract.UsagePage

// UsageRecord is one metered quantity over one stretch of time.
type UsageRecord = contract.UsageRecord
