package edge

import (
	"net/http"
	"strings"

	"github.com/gpuaas/app-platform/transport"
)

// apiPolicy is for answers that no page uses: they load nothing and no frame shows them.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'"

// hsts binds browsers to TLS for a year. Other hosts below the domain are not ours to bind.
const hsts = "max-age=31536000"

// Headers adds what every answer carries; a page that is served beneath sets a policy of its own.
func Headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", apiPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
		if transport.Secure(r) {
			header.Set("Strict-Transport-Security", hsts)
		}
		if strings.HasPrefix(r.URL.Path, "/graphql") || strings.HasPrefix(r.URL.Path, "/auth/") {
			header.Set("Cache-Control", "no-store")
		}
		next.ServeHTTP(w, r)
	})
}
