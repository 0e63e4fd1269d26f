package httpapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Media types of an answer.
const (
	MediaResponse = "application/graphql-response+json"
	MediaJSON     = "application/json"
	mediaHTML     = "text/html"
)

// maxRanges bounds the media ranges read from an Accept header; the rest is ignored.
const maxRanges = 32

// negotiate picks the answer's media type. ok is false when the client takes none of
// ours. Equal preferences go to the new type when it is named, since naming it is a choice.
func negotiate(header http.Header) (media string, ok bool) {
	values := header.Values("Accept")
	if len(values) == 0 {
		return MediaJSON, true
	}
	accept := strings.Join(values, ",")
	modern, modernNamed := quality(accept, MediaResponse)
	legacy, _ := quality(accept, MediaJSON)
	switch {
	case modern == 0 && legacy == 0:
		return "", false
	case modern > legacy, modern == legacy && modernNamed:
		return MediaResponse, true
	default:
		return MediaJSON, true
	}
}

// prefersHTML reports whether a browser's address bar sent the request: text/html is named, and
// ranks at least as high as both of our types.
func prefersHTML(header http.Header) bool {
	accept := strings.Join(header.Values("Accept"), ",")
	html, named := quality(accept, mediaHTML)
	modern, _ := quality(accept, MediaResponse)
	legacy, _ := quality(accept, MediaJSON)
	return named && html > 0 && html >= modern && html >= legacy
}

// quality is the q-value that an Accept header gives a media type, in thousandths; the
// most specific range that matches decides. named: a range names the type itself.
func quality(accept, media string) (q int, named bool) {
	family, _, _ := strings.Cut(media, "/")
	best := 0
	for i, part := range strings.Split(accept, ",") {
		if i == maxRanges {
			break
		}
		name, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		rank := map[string]int{"*/*": 1, family + "/*": 2, media: 3}[name]
		if charset := params["charset"]; rank == 0 || charset != "" && !strings.EqualFold(charset, "utf-8") {
			continue
		}
		if rank >= best {
			best, q = rank, weight(params["q"])
		}
	}
	return q, best == 3
}

func weight(raw string) int {
	if raw == "" {
		return 1000
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0
	}
	return int(f * 1000)
}

// jsonBody reports whether the request declares its body as plain JSON in UTF-8.
func jsonBody(r *http.Request) bool {
	values := r.Header.Values("Content-Type")
	if len(values) != 1 || r.Header.Get("Content-Encoding") != "" {
		return false
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != MediaJSON {
		return false
	}
	charset := params["charset"]
	return charset == "" || strings.EqualFold(charset, "utf-8")
}
