// Package controller is the main of an adapter: flags, structured log, HTTP server, signals. An
// adapter's own main is then a few lines:
//
//	func main() { os.Exit(controller.Main(controller.Spec{Name: "my-adapter", Manifest: manifest, App: newApp})) }
//
// Flags: --listen or --listen-fd (an inherited listening socket), --name, --platform-url, --jwks-url, --issuer,
// --state-dir, --service-account-file, --log-level, --version, --print-manifest. GET /healthz answers 200 while the
// kit runs. The log is JSON on standard error; no token or secret is ever written to it.
package controller
