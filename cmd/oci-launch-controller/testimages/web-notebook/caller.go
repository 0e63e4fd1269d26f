package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// callerHeader is where the platform says who calls.
	callerHeader = "X-App-Platform-Caller"
	// callerType tells such a token from every other that the platform signs.
	callerType = "caller+jwt"
)

// callerOf says who calls, and whether that is proved: by the platform's keys, which the setting PLATFORM_KEYS holds as
// the platform publishes them at /.well-known/jwks.json, and with nobody asked.
func callerOf(r *http.Request, now time.Time) string {
	text := r.Header.Get(callerHeader)
	switch keys := os.Getenv("PLATFORM_KEYS"); {
	case text == "":
		return "Nobody knows who you are: this page was not opened through the platform."
	case keys == "":
		return "Opened through the platform. Who you are is not verified: the setting PLATFORM_KEYS is empty."
	default:
		name, err := verify(text, keys, os.Getenv("GPUAAS_INSTANCE_ID"), now)
		if err != nil {
			return "Who you are is not proved: " + err.Error() + "."
		}
		return "You are " + name + ", as the platform has signed."
	}
}

// verify checks a caller's token for an instance, offline, and returns who it is about.
func verify(text, keys, instance string, now time.Time) (string, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(keys), &set); err != nil {
		return "", errors.New("the platform's keys cannot be read")
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(token.Headers) != 1 {
		return "", errors.New("the caller's token cannot be read")
	}
	if token.Headers[0].ExtraHeaders[jose.HeaderType] != callerType {
		return "", errors.New("the token is not of the type " + callerType)
	}
	var registered jwt.Claims
	var about struct {
		Name string `json:"name"`
	}
	if err := token.Claims(&set, &registered, &about); err != nil {
		return "", errors.New("no key of the platform has signed it")
	}
	if err := registered.ValidateWithLeeway(jwt.Expected{AnyAudience: jwt.Audience{instance}, Time: now}, 0); err != nil {
		return "", fmt.Errorf("it is not for this notebook now (%w)", err)
	}
	return about.Name, nil
}
