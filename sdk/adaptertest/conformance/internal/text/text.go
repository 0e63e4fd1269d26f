// Package text shortens what a report shows and hides tokens in it.
package text

import (
	"strings"
)

// HideTokens replaces the stand-in's tokens in a text.
func HideTokens(text string) string {
	for {
		before, after, found := strings.Cut(text, "gpu_op_")
		if !found {
			return text
		}
		rest := strings.TrimLeft(after, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
		text = before + "(token)" + rest
	}
}

// Clip cuts a text to at most limit bytes.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
