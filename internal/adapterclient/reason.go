package adapterclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Reason says to a person why the adapter did not do it, without addresses.
func (e *Error) Reason() string {
	switch {
	case e.Kind == Forbidden:
		return fmt.Sprintf("the operator's dial policy does not allow the address of adapter %s", e.Target.Name)
	case e.Kind == Insecure:
		return fmt.Sprintf("%s %s: %v", NotCalled, e.Target.Name, e.Err)
	case e.Body.Message != "" && e.Status != 0:
		return fmt.Sprintf("adapter %s answers %s: %s", e.Target.Name, e.Body.Code, clip(e.Body.Message))
	case e.Status != 0:
		return fmt.Sprintf("adapter %s answers HTTP %d", e.Target.Name, e.Status)
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Sprintf("adapter %s does not answer in time", e.Target.Name)
	}
	return fmt.Sprintf("adapter %s cannot be reached%s", e.Target.Name, on(e.Err))
}

// on returns where on the way to an adapter a call ended, without its address: a name that does not resolve, a network
// that leads nowhere, or a machine on which nothing listens. It is empty where that is not known.
func on(err error) string {
	var name *net.DNSError
	if errors.As(err, &name) && name.IsNotFound {
		return ": no such host"
	}
	for _, cause := range []syscall.Errno{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ECONNREFUSED} {
		if errors.Is(err, cause) {
			return ": " + cause.Error()
		}
	}
	return ""
}

// NotCalled begins the reason of an Insecure error.
const NotCalled = "the platform does not call adapter"
