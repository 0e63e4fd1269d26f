// Package keepers links the keepers of secrets that are named by URL into a program: HashiCorp Vault's transit engine
// (hashivault://), AWS KMS (awskms://), Google Cloud KMS (gcpkms://) and Azure Key Vault (azurekeyvault://). They are
// large, so the server alone imports it.
package keepers

import (
	// Each registers its scheme with gocloud.dev/secrets.
	_ "gocloud.dev/secrets/awskms"
	_ "gocloud.dev/secrets/azurekeyvault"
	_ "gocloud.dev/secrets/gcpkms"
	_ "gocloud.dev/secrets/hashivault"
)
