// Package web embeds the built console and the GraphiQL page, and serves them: hashed assets for a year, pages
// always revalidated, everything under a content security policy that allows no inline script and no other origin.
//
// The console is built by `npm ci && npm run build` into dist, which is embedded here. A checkout in which that
// was not done still compiles; its handler then serves a page that names the command to run.
package web

import (
	"embed"
	"io/fs"
)

// dist is the built console; without a build it holds only a place-holder file.
//
//go:embed all:dist
var dist embed.FS

// built is the tree below dist.
func built() fs.FS {
	tree, err := fs.Sub(dist, "dist")
	if err != nil { // the path is a constant and always valid
		return dist
	}
	return tree
}
