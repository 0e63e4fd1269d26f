// Package cli is appctl's commands: a file per noun, as in the API. A command resolves what it was given (a project
// by id or slug, an instance by id or name), makes one or two calls of the public client, and shows the answer as a
// table or JSON. Main turns every error into a message on standard error and an exit code that scripts can use.
package cli
