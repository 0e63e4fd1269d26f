package compress_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport/compress"
)

func TestTheWeightsOfARequestDecideTheCoding(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]compress.Encoding{
		"":                                     compress.Identity,
		"gzip":                                 compress.Gzip,
		"x-gzip":                               compress.Gzip,
		"GZip":                                 compress.Gzip,
		"br":                                   compress.Brotli,
		"gzip, deflate, br, zstd":              compress.Brotli,
		"gzip;q=1.0, br;q=0.9":                 compress.Gzip,
		"br;q=0.8, gzip;q=0.81":                compress.Gzip,
		"br;q=0.8,gzip;q=0.8":                  compress.Brotli,
		"gzip;q=0":                             compress.Identity,
		"gzip;q=0.000":                         compress.Identity,
		"gzip;q=0.001":                         compress.Gzip,
		"gzip;q=0, br":                         compress.Brotli,
		"br;q=0, gzip":                         compress.Gzip,
		"*":                                    compress.Brotli,
		"*;q=0":                                compress.Identity,
		"*;q=0, gzip;q=0.1":                    compress.Gzip,
		"br;q=0, *":                            compress.Gzip,
		"identity":                             compress.Identity,
		"identity, gzip;q=0.5":                 compress.Identity,
		"identity;q=0.5, gzip;q=0.5":           compress.Gzip,
		"identity;q=0.5, gzip;q=0.4, br;q=0.4": compress.Identity,
		"identity;q=0, gzip":                   compress.Gzip,
		"deflate, zstd, compress":              compress.Identity,
		"gzip ; Q=0.5 , br ; q=0.4":            compress.Gzip,
		"gzip;q=":                              compress.Identity,
		"gzip;q=2":                             compress.Identity,
		"gzip;q=1.001":                         compress.Identity,
		"gzip;q=-1":                            compress.Identity,
		"gzip;q=0.5000":                        compress.Identity,
		"gzip;q=1e0":                           compress.Identity,
		"gzip;level=9":                         compress.Identity,
		"gzipped, broken":                      compress.Identity,
		",, ,gzip":                             compress.Gzip,
		strings.Repeat("x,", 40) + "gzip":      compress.Identity,
	} {
		require.Equal(t, want, compress.Preferred(http.Header{"Accept-Encoding": {accept}}), accept)
	}
	require.Equal(t, compress.Identity, compress.Preferred(http.Header{}), "nobody asked")
	require.Equal(t, compress.Brotli, compress.Preferred(http.Header{"Accept-Encoding": {"gzip;q=0.5", "br"}}),
		"two lines")
}

func TestAskingAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations of the whole process
	header := http.Header{"Accept-Encoding": {"gzip;q=0.8, deflate, br;q=0.9, *;q=0.1"}}
	require.Zero(t, testing.AllocsPerRun(100, func() { compress.Preferred(header) }))
}
