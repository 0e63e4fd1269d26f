package money

import (
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// exponents are the currencies of ISO 4217 (list one, 2024-06-25) by the places of their minor unit. Funds, metals and
// test codes have none and are left out.
var exponents = []struct {
	places int32
	codes  string
}{
	{0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"},
	{2, "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD " +
		"CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS " +
		"GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL " +
		"MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK " +
		"PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS " +
		"TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD YER ZAR ZMW"},
	{3, "BHD IQD JOD KWD LYD OMR TND"},
	{4, "CLF UYW"},
}

// minor is the places of each currency's minor unit.
var minor = func() map[string]int32 {
	index := map[string]int32{}
	for _, row := range exponents {
		for _, code := range strings.Fields(row.codes) {
			index[code] = row.places
		}
	}
	return index
}()

// Minor returns the places of a currency's minor unit: 2 for EUR, 0 for JPY, 3 for KWD. INVALID_ARGUMENT when ISO 4217
// has no such currency.
func Minor(currency string) (int32, error) {
	if places, known := minor[currency]; known {
		return places, nil
	}
	return 0, fault.New(fault.InvalidArgument, "%.10q is not a currency of ISO 4217: name one in three capital letters",
		currency)
}
