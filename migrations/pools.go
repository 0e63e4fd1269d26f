package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// MemberPools sets the pools of the members' network, in CIDR form; an empty one stays as it is. It fails when they
// overlap, or when a member has an address or a range outside of them, and then changes nothing. dsn is an
// administrator's.
func MemberPools(ctx context.Context, dsn, addresses, ranges string) error {
	if addresses == "" && ranges == "" {
		return nil
	}
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	config.RuntimeParams["role"] = "app_owner"
	owner, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect as administrator: %w", err)
	}
	defer func() { _ = owner.Close(context.WithoutCancel(ctx)) }()
	_, err = owner.Exec(ctx, `SELECT platform.set_member_pool(coalesce(nullif($1, '')::cidr, addresses),
		coalesce(nullif($2, '')::cidr, ranges))
		FROM platform.member_pool`, addresses, ranges)
	if err != nil {
		return fmt.Errorf("set the pools of the members' network: %w", err)
	}
	return nil
}
