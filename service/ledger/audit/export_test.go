package audit

import "github.com/gpuaas/app-platform/domain/ids"

// Where is a filter as SQL, from the beginning, for a look at its plan.
func Where(f Filter) (string, []any) { return f.where(ids.ID("zz")) }
