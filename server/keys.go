package server

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/gpuaas/app-platform/authz/token"
)

// reloadKeys takes up the signing keys of the folder as they come and go, every minute and on SIGHUP, until ctx
// ends. What cannot be read leaves the keys as they are.
func (p *platform) reloadKeys(ctx context.Context) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	every := time.NewTicker(token.ReloadEvery)
	defer every.Stop()
	_, before := p.ring.SigningKey()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
		case <-every.C:
		}
		if err := errors.Join(p.ring.Reload(), p.ssh.Reload()); err != nil {
			p.log.ErrorContext(ctx, "the signing keys could not be read again", "error", err)
			continue
		}
		if _, now := p.ring.SigningKey(); now != before {
			p.log.InfoContext(ctx, "another key signs", "key", now)
			before = now
		}
	}
}

// KeeperFlags ties the keepers of secrets to flags.
func KeeperFlags(flags *pflag.FlagSet, first *string, previous *[]string) {
	flags.StringVar(first, "secrets-keeper", "",
		"keeper that wraps the keys of secrets, by URL: hashivault://, awskms://, gcpkms://, azurekeyvault:// "+
			"(default a local key in --keys-dir)")
	flags.StringArrayVar(previous, "secrets-keeper-previous", nil,
		`earlier keeper, which still unwraps what it wrapped, by URL, or "local"; repeatable, at most 7`)
}
