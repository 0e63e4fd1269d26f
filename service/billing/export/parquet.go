package export

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/service/billing"
)

// decimalBytes is the size of decimal(38,12) in a file: numbers stay exact in whatever reads them.
const decimalBytes = 16

// column is a column of the file; none of an optional one is null.
type column struct {
	name string
	node parquet.Node
	cell func(s *billing.Statement, l *billing.Line) parquet.Value
}

func text(name string, of func(l *billing.Line) string) column {
	return column{name, parquet.String(), func(_ *billing.Statement, l *billing.Line) parquet.Value {
		return parquet.ByteArrayValue([]byte(of(l)))
	}}
}

func instant(name string, of func(l *billing.Line) time.Time) column {
	return column{name, parquet.Timestamp(parquet.Microsecond),
		func(_ *billing.Statement, l *billing.Line) parquet.Value {
			return parquet.Int64Value(of(l).UnixMicro())
		}}
}

func decimal(name string, of func(l *billing.Line) money.Decimal) column {
	return column{name, exact(), func(_ *billing.Statement, l *billing.Line) parquet.Value {
		return parquet.FixedLenByteArrayValue(twosComplement(of(l)))
	}}
}

func exact() parquet.Node {
	return parquet.Decimal(money.Scale, 38, parquet.FixedLenByteArrayType(decimalBytes))
}

// columns are those of the CSV form, with types.
var columns = []column{
	text("key", func(l *billing.Line) string { return l.Key }),
	text("project_id", func(l *billing.Line) string { return string(l.ProjectID) }),
	instant("from", func(l *billing.Line) time.Time { return l.From }),
	instant("to", func(l *billing.Line) time.Time { return l.To }),
	{"correction", parquet.Leaf(parquet.BooleanType), func(_ *billing.Statement, l *billing.Line) parquet.Value {
		return parquet.BooleanValue(l.Correction)
	}},
	text("meter", func(l *billing.Line) string { return l.Meter }),
	text("unit", func(l *billing.Line) string { return l.Unit }),
	text("sku", func(l *billing.Line) string { return l.SKU }),
	text("region", func(l *billing.Line) string { return l.Region }),
	{"price_id", parquet.Optional(parquet.String()), func(_ *billing.Statement, l *billing.Line) parquet.Value {
		if l.PriceID == nil {
			return parquet.NullValue()
		}
		return parquet.ByteArrayValue([]byte(*l.PriceID))
	}},
	decimal("quantity", func(l *billing.Line) money.Decimal { return l.Quantity }),
	decimal("billed", func(l *billing.Line) money.Decimal { return l.Billed }),
	{"currency", parquet.String(), func(s *billing.Statement, _ *billing.Line) parquet.Value {
		return parquet.ByteArrayValue([]byte(s.Period.Currency))
	}},
	{"amount", parquet.Optional(exact()), func(_ *billing.Statement, l *billing.Line) parquet.Value {
		if l.Amount == nil {
			return parquet.NullValue()
		}
		return parquet.FixedLenByteArrayValue(twosComplement(*l.Amount))
	}},
}

// twosComplement is a number at twelve places as decimal(38,12) has it: big-endian.
func twosComplement(d money.Decimal) []byte {
	n, _ := new(big.Int).SetString(strings.Replace(d.Fixed(money.Scale), ".", "", 1), 10) // digits alone
	if n.Sign() < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), 8*decimalBytes))
	}
	return n.FillBytes(make([]byte, decimalBytes))
}

// columnar writes the lines as Parquet. The columns lie in the order of their names, as groups of the format do.
func columnar(s *billing.Statement, name string) (*Export, error) {
	group := parquet.Group{}
	for _, c := range columns {
		group[c.name] = c.node
	}
	sorted := slices.SortedFunc(slices.Values(columns), func(a, b column) int { return cmp.Compare(a.name, b.name) })
	var file bytes.Buffer
	writer := parquet.NewWriter(&file, parquet.NewSchema("statement", group), parquet.CreatedBy("gpuaas", "1", ""))
	for _, line := range s.Lines {
		row := make(parquet.Row, len(sorted))
		for i, c := range sorted {
			value, defined := c.cell(s, line), 0
			if c.node.Optional() && !value.IsNull() {
				defined = 1
			}
			row[i] = value.Level(0, defined, i)
		}
		if _, err := writer.WriteRows([]parquet.Row{row}); err != nil {
			return nil, fmt.Errorf("write a statement as Parquet: %w", err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("write a statement as Parquet: %w", err)
	}
	return &Export{FileName: name + ".parquet", MediaType: "application/vnd.apache.parquet", Base64: true,
		Body: base64.StdEncoding.EncodeToString(file.Bytes())}, nil
}
