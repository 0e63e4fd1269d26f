// Package fault is the one language of refusal: every error that may leave the platform is a Fault with a code
// of the catalogue, a message fit for a person, and reasons that name the field at fault. What a Fault wraps
// (Err) is for logs alone and never leaves the server.
//
//	return fault.New(fault.ConfigInvalid, "the configuration does not fit the app's schema").
//		With(fault.Reason{Code: fault.BadValue, Message: "must be at least 1", Path: "config.workers"})
package fault

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// MaxReasons bounds the reasons of one Fault; further ones are dropped, as no one reads a hundred of them.
const MaxReasons = 50

// Fault is an error of the catalogue. Build it with New; its methods return changed copies.
type Fault struct {
	// Code is the catalogue's code.
	Code Code
	// Message says in a sentence what is wrong, in lower case and without a full stop.
	Message string
	// Reasons are the single causes, at most MaxReasons, each with the path of the input field where there is one.
	Reasons []Reason
	// Retryable overrides the catalogue's default when set: may the same request succeed later, unchanged?
	Retryable *bool
	// Err is the cause for the log; it never leaves the server.
	Err error
}

// Reason is one cause of a Fault.
type Reason struct {
	// Code is a code of the catalogue, often one that appears only in reasons.
	Code Code `json:"code"`
	// Message says what is wrong with this one thing.
	Message string `json:"message"`
	// Path names the input field, such as "input.config.partitionName"; empty where no field is at fault.
	Path string `json:"path,omitempty"`
}

// New returns a Fault with a formatted message. A %w in the format is kept as its cause.
func New(code Code, format string, args ...any) *Fault {
	err := fmt.Errorf(format, args...)
	return &Fault{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// At returns the fault with one more reason: its own code and message, at the path of the input field.
func (f *Fault) At(path string) *Fault {
	return f.With(Reason{Code: f.Code, Message: f.Message, Path: path})
}

// Because returns the fault with err as the cause that is logged and found by errors.Is and errors.As.
func (f *Fault) Because(err error) *Fault {
	copied := *f
	copied.Err = err
	return &copied
}

// With returns the fault with more reasons, at most MaxReasons in all.
func (f *Fault) With(reasons ...Reason) *Fault {
	copied := *f
	copied.Reasons = append(slices.Clip(f.Reasons), reasons...)
	if len(copied.Reasons) > MaxReasons {
		copied.Reasons = copied.Reasons[:MaxReasons]
	}
	return &copied
}

// Retry returns the fault with Retryable set: whether the same request may succeed later.
func (f *Fault) Retry(retryable bool) *Fault {
	copied := *f
	copied.Retryable = &retryable
	return &copied
}

// CanRetry reports whether the same request may succeed later, unchanged: by Retryable, else by the catalogue.
func (f *Fault) CanRetry() bool {
	if f.Retryable != nil {
		return *f.Retryable
	}
	return Lookup(f.Code).Retryable
}

// HTTPStatus returns the status of an HTTP answer that carries this fault.
func (f *Fault) HTTPStatus() int { return cmp.Or(Lookup(f.Code).HTTP, Lookup(Internal).HTTP) }

// Error returns the text for logs: code, message, the reasons' messages and paths, and the cause.
func (f *Fault) Error() string {
	text := string(f.Code) + ": " + f.Message
	for _, reason := range f.Reasons {
		if reason.Message != f.Message {
			text += "; " + reason.Message
		}
		if reason.Path != "" {
			text += " (at " + reason.Path + ")"
		}
	}
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

// Unwrap returns the cause; nil without one.
func (f *Fault) Unwrap() error { return f.Err }

// As finds the Fault in err's chain.
func As(err error) (*Fault, bool) {
	var found *Fault
	ok := errors.As(err, &found)
	return found, ok && found != nil
}

// Is reports whether err's chain holds a Fault whose code is code. Only the outermost Fault counts: it is what
// the caller receives.
func Is(err error, code Code) bool {
	found, ok := As(err)
	return ok && found.Code == code
}

// From returns err as a Fault: the one in its chain, else INTERNAL with err as the cause and nothing of its text.
// It returns nil for a nil error.
func From(err error) *Fault {
	if err == nil {
		return nil
	}
	if found, ok := As(err); ok {
		return found
	}
	return New(Internal, "the platform failed to do this").Because(err)
}

// Prefixed returns the reasons with a prefix before each path, joined with a dot: a verb calls it for the reasons
// of a rule that does not know where its input came from.
func Prefixed(prefix string, reasons []Reason) []Reason {
	out := make([]Reason, len(reasons))
	for i, reason := range reasons {
		out[i] = reason
		switch {
		case reason.Path == "":
			out[i].Path = prefix
		case prefix != "":
			out[i].Path = prefix + "." + reason.Path
		}
	}
	return out
}

// NoSuch returns the one NOT_FOUND of the platform. Its text is the same whether the object does not exist or is
// hidden from the caller, so that the answer does not reveal which.
func NoSuch() *Fault {
	return New(NotFound, "the object does not exist, or the caller may not see it")
}
