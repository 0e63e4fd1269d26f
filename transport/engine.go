package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gpuaas/app-platform/transport/guard"
)

// Config holds what an Engine needs.
type Config struct {
	// Schema is the generated schema. Required.
	Schema graphql.ExecutableSchema
	// Limits bound a document; zero fields take guard's defaults.
	Limits guard.Limits
	// Suggestions lets validation say what a misspelt name may have meant. It reveals the schema to
	// callers that guess, so it is for development.
	Suggestions bool
	// Present maps an error of a resolver, of Authenticate or of Streams.Open to what the
	// caller sees, code included. An error without a code, or nil, becomes INTERNAL and is
	// logged. Errors of the transport itself never reach it. Optional.
	Present func(ctx context.Context, err error) *gqlerror.Error
	// Timeout bounds a query or mutation; 30 s.
	Timeout time.Duration
	// Log takes panics and unmapped errors; slog.Default().
	Log *slog.Logger
	// Began, when set, returns the context that an operation runs in, before anything of it is looked at. It must not
	// block.
	Began func(ctx context.Context) context.Context
	// Ended, when set, receives each operation once it is answered or refused, and a subscription once it has
	// begun. The context is that of the operation, with its caller where one was found. It must not block.
	Ended func(ctx context.Context, ended *Ended)
	// Uncompressed are fields, as "Type.field", that may hold a secret beside text of another party. No answer with one
	// of them is compressed, since its length would reveal how much the two have in common.
	Uncompressed []string
	// Extensions are added to the executor (tracing, metrics).
	Extensions []graphql.HandlerExtension
}

// Engine guards, prepares and runs operations for both transports. It is safe for
// concurrent use.
type Engine struct {
	config Config
	exec   *executor.Executor
	guard  *guard.Guard
	cache  *cache
}

// NewEngine checks the configuration and makes an engine.
func NewEngine(config Config) (*Engine, error) {
	if config.Schema == nil {
		return nil, errors.New("transport engine: Schema is missing")
	}
	if config.Present == nil {
		config.Present = func(context.Context, error) *gqlerror.Error { return nil }
	}
	if config.Timeout <= 0 {
		config.Timeout = 30 * time.Second
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	e := &Engine{config: config, exec: executor.New(lazily{config.Schema}), cache: newCache()}
	e.guard = guard.New(config.Schema.Schema(), config.Limits)
	e.exec.SetQueryCache(prepared{})
	e.exec.SetErrorPresenter(e.Present)
	e.exec.SetRecoverFunc(e.Recovered)
	for _, extension := range config.Extensions {
		if err := extension.Validate(config.Schema); err != nil {
			return nil, fmt.Errorf("transport engine: extension %s: %w", extension.ExtensionName(), err)
		}
		e.exec.Use(extension)
	}
	return e, nil
}

// Log is the engine's logger, for the transports.
func (e *Engine) Log() *slog.Logger { return e.config.Log }

// Recovered logs a panic with its stack and answers with an error that shows neither.
func (e *Engine) Recovered(ctx context.Context, cause any) error {
	e.config.Log.ErrorContext(ctx, "panic in a resolver", slog.Any("panic", cause),
		slog.String("correlation_id", CorrelationID(ctx)), slog.String("stack", string(debug.Stack())))
	return Refuse(CodeInternal, "internal error")
}

// Prepare guards, parses, validates and prices an operation, without running it. The
// errors are request errors in the platform's envelope: the answer has no data.
func (e *Engine) Prepare(ctx context.Context, params *graphql.RawParams) (op *graphql.OperationContext,
	list gqlerror.List) {
	defer func() {
		if cause := recover(); cause != nil {
			op, list = nil, gqlerror.List{e.Present(ctx, e.Recovered(ctx, cause))}
		}
	}()
	doc, list := e.document(ctx, params.Query)
	if list != nil {
		return nil, list
	}
	if list := e.selected(ctx, doc, params); list != nil {
		return nil, list
	}
	ctx = context.WithValue(graphql.StartOperationTrace(ctx), preparedKey{}, doc.ast)
	op, list = e.exec.CreateOperationContext(ctx, params)
	if len(list) > 0 {
		return nil, e.requestErrors(ctx, list)
	}
	op.DisableIntrospection = !e.guard.Limits().Introspection
	reported(ctx, op, doc.plan.Cost(op.Operation, params.Variables))
	return op, nil
}

// document returns the validated document of a text, from the cache when it is known.
func (e *Engine) document(ctx context.Context, text string) (*document, gqlerror.List) {
	if doc := e.cache.get(text); doc != nil {
		return doc, nil
	}
	if refused := e.guard.Lex(text); refused != nil {
		return nil, gqlerror.List{refusal(ctx, refused)}
	}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, e.guard.Limits().Tokens)
	if err != nil {
		return nil, gqlerror.List{syntaxError(ctx, err)}
	}
	if len(parsed.Operations) == 0 {
		return nil, gqlerror.List{refusal(ctx, &guard.Error{Kind: guard.Invalid,
			Message: "the document holds no operation"})}
	}
	plan, refused := e.guard.Analyze(parsed)
	if refused != nil {
		return nil, gqlerror.List{refusal(ctx, refused)}
	}
	if list := validator.ValidateWithRules(e.config.Schema.Schema(), parsed, e.rules()); len(list) > 0 {
		return nil, e.invalidDocument(ctx, list)
	}
	doc := &document{ast: parsed, plan: plan, plain: e.selectsPlain(parsed)}
	e.cache.add(text, doc)
	return doc, nil
}

// syntaxError keeps the place of a syntax error and drops its text, which quotes the input.
func syntaxError(ctx context.Context, err error) *gqlerror.Error {
	refused := &guard.Error{Kind: guard.Invalid, Message: "syntax error"}
	var at *gqlerror.Error
	if errors.As(err, &at) && len(at.Locations) > 0 {
		refused.Line, refused.Column = at.Locations[0].Line, at.Locations[0].Column
	}
	return refusal(ctx, refused)
}

// rules are the specification's; those that search for suggestions only where they are shown.
func (e *Engine) rules() *rules.Rules {
	set := rules.NewDefaultRules()
	if e.config.Suggestions {
		return set
	}
	set.ReplaceRule(rules.FieldsOnCorrectTypeRule.Name, rules.FieldsOnCorrectTypeRuleWithoutSuggestions.RuleFunc)
	set.ReplaceRule(rules.ScalarLeafsRule.Name, rules.ScalarLeafsRuleWithoutSuggestions.RuleFunc)
	set.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
	set.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
	set.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
	return set
}

// selected finds the operation to run and checks its price with these variables.
func (e *Engine) selected(ctx context.Context, doc *document, params *graphql.RawParams) gqlerror.List {
	op := doc.ast.Operations.ForName(params.OperationName)
	if op == nil {
		message := "operationName names no operation of the document"
		if params.OperationName == "" {
			message = "the document holds several operations: operationName must choose one"
		}
		return gqlerror.List{refusal(ctx, &guard.Error{Kind: guard.Invalid, Message: message})}
	}
	if err := strict(e.config.Schema.Schema(), op, params.Variables); err != nil {
		return gqlerror.List{invalidVariable(ctx, err)}
	}
	if refused := doc.plan.Check(op, params.Variables); refused != nil {
		return gqlerror.List{refusal(ctx, refused)}
	}
	return nil
}

// requestErrors maps what the executor still refuses: variables, and extensions' words.
func (e *Engine) requestErrors(ctx context.Context, list gqlerror.List) gqlerror.List {
	shown := make(gqlerror.List, 0, len(list))
	for _, err := range list {
		if len(err.Path) > 0 && err.Path[0] == ast.PathName("variable") {
			shown = append(shown, invalidVariable(ctx, err))
			continue
		}
		shown = append(shown, e.Present(ctx, err))
	}
	return shown
}

// Run executes a query or mutation within the engine's timeout.
func (e *Engine) Run(ctx context.Context, op *graphql.OperationContext) (response *graphql.Response) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			response = e.Failed(ctx, e.Recovered(ctx, cause))
		}
	}()
	next, ctx := e.exec.DispatchOperation(ctx, op)
	if response = next(ctx); response != nil {
		return response
	}
	return e.Failed(ctx, Refuse(CodeDeadlineExceeded, "the operation ran out of time"))
}

// Subscribe starts a subscription on the executor. The returned function blocks for the
// next response, and returns nil at the end or when ctx is done.
func (e *Engine) Subscribe(ctx context.Context, op *graphql.OperationContext) func() *graphql.Response {
	next, ctx := e.exec.DispatchOperation(ctx, op)
	return func() *graphql.Response { return next(ctx) }
}

// Failed is a response that holds one presented error and no data.
func (e *Engine) Failed(ctx context.Context, err error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{e.Present(ctx, err)}}
}

// prepared hands the executor the document that Prepare has already validated.
type prepared struct{}

type preparedKey struct{}

// Get returns the prepared document; it is always there.
func (prepared) Get(ctx context.Context, _ string) (*ast.QueryDocument, bool) {
	doc, ok := ctx.Value(preparedKey{}).(*ast.QueryDocument)
	return doc, ok
}

// Add is never reached, as Get always answers.
func (prepared) Add(context.Context, string, *ast.QueryDocument) {}

// Encode writes a response as JSON. A response without data has no data key.
func Encode(response *graphql.Response) ([]byte, error) {
	if len(response.Errors) == 0 && len(response.Extensions) == 0 && response.Data != nil {
		out := make([]byte, 0, len(response.Data)+len(`{"data":}`))
		out = append(out, `{"data":`...)
		out = append(out, response.Data...)
		return append(out, '}'), nil
	}
	out, err := json.Marshal(struct {
		Errors     gqlerror.List   `json:"errors,omitempty"`
		Data       json.RawMessage `json:"data,omitempty"`
		Extensions map[string]any  `json:"extensions,omitempty"`
	}{response.Errors, response.Data, response.Extensions})
	if err != nil {
		return nil, fmt.Errorf("encode the response: %w", err)
	}
	return out, nil
}
