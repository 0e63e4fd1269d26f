// Package triage reports for one id what was requested, by whom, its present state, which branch of which runbook
// applies, the evidence, who can clear it, and what to do next.
//
// The rows are read in one transaction as the caller, and the report is a pure function of them: it does not need a
// live worker.
package triage

import (
	"context"
	"crypto/rand"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/triage/links"
)

// maxAbout bounds the id in bytes; the platform's own correlation ids and those that callers choose are shorter.
const maxAbout = 200

// maxEvidence bounds the rows of each kind.
const maxEvidence = 50

// Service holds what the read needs.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Links are the templates of the installation's own tools.
	Links links.Templates
}

// Report reports on what an id is about: a correlation id, an operation, or the newest operation of an instance, a
// member, an allocation, a node task, an event, an entry of the audit, or of anything that the audit has an entry of.
// It requires operation.read on the operation's project, and for a request without an operation audit.read where
// its entry belongs; rows that need another key are left out where the caller lacks it. Faults: INVALID_ARGUMENT at
// id, NOT_FOUND when it is missing or hidden, FORBIDDEN.
func (s *Service) Report(ctx context.Context, about string) (*Report, error) {
	found, actor, object, err := s.read(ctx, about)
	if err != nil {
		return nil, err
	}
	return Explain(found, func(key authz.Key) bool { return actor.AllowsOn(key, object) }), nil
}

// read reads everything about an id that the caller may read, and returns the caller and the object it is about.
func (s *Service) read(ctx context.Context, about string) (*Rows, *authz.Actor, authz.Object, error) {
	none := authz.Object{}
	if about == "" || len(about) > maxAbout {
		return nil, nil, none, fault.New(fault.InvalidArgument, "the id must be 1 to %d bytes", maxAbout).At("id")
	}
	of, err := s.find(ctx, about)
	if err != nil {
		return nil, nil, none, err
	}
	var read reading
	actor, err := s.DB.Read(ctx, read.queries(of)...)
	if err != nil {
		return nil, nil, none, err
	}
	if read.operation == nil && len(read.Audits) == 0 {
		return nil, nil, none, fault.NoSuch()
	}
	found, object := read.permitted(actor), read.object()
	switch {
	case found.Operation != nil:
		err = authz.RequireOn(actor, authz.OperationRead, object)
	case len(found.Audits) == 0:
		// The entry's own scope: an account that is limited to the instance may not read audit, whatever the subject.
		err = authz.RequireOn(actor, authz.AuditRead, read.Audits[0].object())
	}
	if err != nil {
		return nil, nil, none, err
	}
	found.Key, found.Templates = "triage-"+rand.Text(), s.Links
	return found, actor, object, nil
}
