package endpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
)

// Redeemed is an endpoint that a browser has opened.
type Redeemed struct {
	// Secret is for the cookie of the endpoint's host alone.
	Secret    string
	ExpiresAt time.Time
}

// Redeem uses a ticket, which works once and for TicketLife; UNAUTHENTICATED afterwards, and for what is not a ticket.
func (s *Service) Redeem(ctx context.Context, ticket string) (*Redeemed, error) {
	refused := fault.New(fault.Unauthenticated, "the ticket is unknown, used or expired: open the endpoint again")
	shown, err := token.ParseSecret(ticket)
	if err != nil || shown.Kind != token.Ticket {
		return nil, refused
	}
	text, fresh := token.MintFor(token.Opening, shown.ID)
	var ends *time.Time
	err = s.DB.API().QueryRow(ctx, `SELECT platform.redeem_opening($1, $2, $3)`, shown.ID, shown.Hash,
		fresh.Hash).Scan(&ends)
	switch {
	case err != nil:
		return nil, fmt.Errorf("redeem a ticket: %w", err)
	case ends == nil:
		return nil, refused
	}
	return &Redeemed{Secret: text, ExpiresAt: *ends}, nil
}
