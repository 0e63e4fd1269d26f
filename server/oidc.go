package server

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gpuaas/app-platform/graph/authhttp"
)

// OIDCConfig is the identity provider that people log in at; an empty Issuer means no provider.
type OIDCConfig struct {
	// Issuer is the provider's identifier, exactly as it is in its tokens.
	Issuer   string
	ClientID string
	// SecretFile holds our secret at the provider; empty for a public client.
	SecretFile string
	// Name is what people call the provider.
	Name string

	secret string
}

func (c *OIDCConfig) bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.Issuer, "oidc-issuer", "",
		"identity provider that people log in at, exactly as it names itself: https://id.example.com")
	flags.StringVar(&c.ClientID, "oidc-client-id", "", "client id at the identity provider")
	flags.StringVar(&c.SecretFile, "oidc-client-secret-file", "",
		"file with the client secret (default none, for a public client)")
	flags.StringVar(&c.Name, "oidc-name", "", "what people call the identity provider (default its host)")
}

// complete reads the secret, and refuses what cannot work or would not be safe.
func (c *OIDCConfig) complete() error {
	if c.Issuer == "" {
		if c.ClientID != "" || c.SecretFile != "" {
			return errors.New("--oidc-client-id and --oidc-client-secret-file need --oidc-issuer")
		}
		return nil
	}
	issuer, err := url.Parse(c.Issuer)
	if err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil {
		return fmt.Errorf("--oidc-issuer: %q is not the URL of an identity provider", c.Issuer)
	}
	if host := issuer.Hostname(); issuer.Scheme != "https" &&
		(issuer.Scheme != "http" || (host != "localhost" && host != "127.0.0.1" && host != "::1")) {
		return errors.New("--oidc-issuer must be https, unless it is on this machine")
	}
	if c.ClientID == "" {
		return errors.New("--oidc-issuer needs --oidc-client-id")
	}
	if c.Name == "" {
		c.Name = issuer.Hostname()
	}
	if c.SecretFile == "" {
		return nil
	}
	secret, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return fmt.Errorf("--oidc-client-secret-file: %w", err)
	}
	if c.secret = strings.TrimSpace(string(secret)); c.secret == "" {
		return errors.New("--oidc-client-secret-file is empty")
	}
	return nil
}

// provider is the identity provider for the logins; nil without an issuer.
func (c *OIDCConfig) provider(publicURL string) *authhttp.OIDC {
	if c.Issuer == "" {
		return nil
	}
	return &authhttp.OIDC{Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.secret, Name: c.Name,
		RedirectURL: publicURL + "/auth/oidc/callback"}
}
