// Package logincode is the short code by which a person recognises a command line's login in the browser.
package logincode

import (
	"crypto/sha256"
	"encoding/base32"
)

// spelled leaves out the letters and digits that are read as others.
var spelled = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// Of returns the code of a login that began with this challenge, such as "7K2M-Q0TD". The command line and the consent
// page show it, so that a person can compare them; a login that someone else began has another code.
func Of(challenge string) string {
	sum := sha256.Sum256([]byte("app-platform login " + challenge))
	text := spelled.EncodeToString(sum[:5])
	return text[:4] + "-" + text[4:]
}
