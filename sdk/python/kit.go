// Package python holds the kit for adapters in Python, for programs that hand it out.
package python

import "embed"

// Kit is the folder gpuaas_adapter.
//
//go:embed gpuaas_adapter/*.py gpuaas_adapter/py.typed
var Kit embed.FS
