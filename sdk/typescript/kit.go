// Package typescript holds the kit for adapters in TypeScript, for programs that hand it out.
package typescript

import "embed"

// Kit is the folder src.
//
//go:embed src/*.ts
var Kit embed.FS
