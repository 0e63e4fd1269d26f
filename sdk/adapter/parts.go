package adapter

import (
	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/kit"
	"github.com/gpuaas/app-platform/sdk/adapter/operation"
	"github.com/gpuaas/app-platform/sdk/adapter/sign"
)

// OperationFunc carries out one operation kind of one app.
type OperationFunc = kit.OperationFunc

// ActionFunc carries out one action and returns its output, a value that encodes to a JSON object valid against the
// action's output schema.
type ActionFunc = kit.ActionFunc

// AppAction is an action's declaration and its function.
type AppAction = kit.AppAction

// App is one app of an adapter: its description and its functions.
type App = kit.App

// Call is the input and the means of an action, an observation or a usage query.
type Call = kit.Call

// Client speaks to the public API with a narrowed token, which it renews before its end.
type Client = api.Client

// KeySet is the platform's published key set, fetched when first needed, cached, and fetched again when a token names a
// key that is not in it: that is how a rotation is noticed.
type KeySet = sign.KeySet

// Config is the configuration of a kit.
type Config = kit.Config

// Kit serves the adapter contract for some apps: it verifies, journals, runs and reports.
type Kit = kit.Kit

// PlanCall is the input and the means of a plan: the instance, its members, read-only node tasks, and the request.
type PlanCall = kit.PlanCall

// Run is one operation under way: its dispatch, and the means to carry it out.
type Run = operation.Run

// SecretRequest requests a runtime secret of an instance.
type SecretRequest = api.SecretRequest

// RequestClaims are the claims of a request token.
type RequestClaims = sign.RequestClaims

// Signer issues request tokens: the platform's side of the signature.
type Signer = sign.Signer

// KeySource finds the platform's public key by its id.
type KeySource = sign.KeySource

// Verifier checks request tokens: the adapter's side of the signature.
type Verifier = sign.Verifier

// Tasks is how an adapter acts on the world: node tasks and reports, by the public API.
type Tasks = api.Tasks

// Report is what an adapter reports about an operation under way.
type Report = api.Report

// TaskOption changes how a node task is run.
type TaskOption = api.TaskOption
