package supportbundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Omission is something that is not in a bundle.
type Omission struct {
	// What and Why are for people.
	What string `json:"what"`
	Why  string `json:"why"`
	// Count is how many values or rows; 0 where it is not counted.
	Count int `json:"count"`
}

// Summary is what a manifest says of one section.
type Summary struct {
	// Name is the section's, and Fields are what its rows may have.
	Name   string   `json:"name"`
	Fields []string `json:"fields"`
	// Rows is how many there are, and Digest the SHA-256 of their lines.
	Rows   int    `json:"rows"`
	Digest string `json:"digest"`
}

// Manifest is the first line of a bundle.
type Manifest struct {
	// Format is Format, and About the id that the bundle was requested of, where that is a typed id.
	Format string `json:"format"`
	About  string `json:"about,omitempty"`
	// MadeAt is when it was put together.
	MadeAt time.Time `json:"madeAt"`
	// Sections are in the order of the lines, and LeftOut is what is not in it.
	Sections []Summary  `json:"sections"`
	LeftOut  []Omission `json:"leftOut"`
}

// Row is the values of a row by the names of their fields. A nil pointer and an absent name leave a field out, and so
// does an empty text.
type Row map[string]any

// Builder puts a bundle together.
type Builder struct {
	rows    map[string][]json.RawMessage
	leftOut []Omission
}

// Add adds a row to a section. It is an error to add a field that the section's table lacks: nothing comes into a
// bundle by accident. A value that is not of its field's kind is left out, and the manifest counts it.
func (b *Builder) Add(name string, row Row) error {
	section, known := named(name)
	if !known {
		return fmt.Errorf("a support bundle has no section %s", name)
	}
	for field := range row {
		if _, err := section.field(field); err != nil {
			return err
		}
	}
	if len(b.rows[name]) == MaxRows {
		b.LeaveOut(name+" rows", fmt.Sprintf("a section has at most %d rows", MaxRows), 1)
		return nil
	}
	var line bytes.Buffer
	line.WriteString(`{`)
	for _, field := range section.Fields {
		value := plainOf(row[field.Name])
		if value == nil || value == "" {
			continue
		}
		shown, ok := field.Kind.value(value)
		if !ok {
			b.LeaveOut(name+"."+field.Name, why[field.Kind], 1)
			continue
		}
		text, err := json.Marshal(shown)
		if err != nil {
			return fmt.Errorf("encode %s.%s: %w", name, field.Name, err)
		}
		if line.Len() > 1 {
			line.WriteString(`,`)
		}
		fmt.Fprintf(&line, "%q:%s", field.Name, text)
	}
	line.WriteString(`}`)
	if b.rows == nil {
		b.rows = map[string][]json.RawMessage{}
	}
	b.rows[name] = append(b.rows[name], line.Bytes())
	return nil
}

// plainOf is a value without a pointer and a name of its type: a text, a number, a truth or a time; nil for a nil
// pointer.
func plainOf(given any) any {
	value := reflect.ValueOf(given)
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	if !value.IsValid() {
		return nil
	}
	if at, ok := value.Interface().(time.Time); ok {
		return at
	}
	switch value.Kind() {
	case reflect.String:
		return value.String()
	case reflect.Int, reflect.Int64, reflect.Int32:
		return int(value.Int())
	case reflect.Bool:
		return value.Bool()
	}
	return value.Interface()
}

// LeaveOut records in the manifest what is not in the bundle. A repeat with the same what and why adds to the count.
func (b *Builder) LeaveOut(what, why string, count int) {
	i := slices.IndexFunc(b.leftOut, func(o Omission) bool { return o.What == what && o.Why == why })
	if i < 0 {
		b.leftOut = append(b.leftOut, Omission{What: what, Why: why, Count: count})
		return
	}
	b.leftOut[i].Count += count
}

// File writes the bundle, and returns it with its manifest. Where it would be larger than MaxBytes, rows of the section
// with the most bytes are left out from the front, the oldest first.
func (b *Builder) File(about string, madeAt time.Time) ([]byte, *Manifest, error) {
	for b.size() > MaxBytes/2 { // the manifest and the lines' frames are far below the other half
		b.shorten()
	}
	manifest := &Manifest{Format: Format, MadeAt: madeAt.UTC(), Sections: []Summary{}}
	if forms[ID].MatchString(about) {
		manifest.About = about
	}
	var body bytes.Buffer
	for _, section := range sections {
		rows := b.rows[section.Name]
		if len(rows) == 0 {
			continue
		}
		begin := body.Len()
		for _, row := range rows {
			fmt.Fprintf(&body, "{\"section\":%q,\"row\":%s}\n", section.Name, row)
		}
		manifest.Sections = append(manifest.Sections, Summary{Name: section.Name, Fields: section.names(),
			Rows: len(rows), Digest: Digest(body.Bytes()[begin:])})
	}
	manifest.LeftOut = append(slices.Clone(b.leftOut), never...)
	head, err := json.Marshal(map[string]*Manifest{"manifest": manifest})
	if err != nil {
		return nil, nil, fmt.Errorf("encode the manifest: %w", err)
	}
	return append(append(head, '\n'), body.Bytes()...), manifest, nil
}

func (b *Builder) size() (total int) {
	for _, rows := range b.rows {
		total += sizeOf(rows)
	}
	return total
}

func sizeOf(rows []json.RawMessage) (total int) {
	for _, row := range rows {
		total += len(row)
	}
	return total
}

// shorten leaves out a quarter of the largest section.
func (b *Builder) shorten() {
	largest := ""
	for _, section := range sections {
		if largest == "" || sizeOf(b.rows[section.Name]) > sizeOf(b.rows[largest]) {
			largest = section.Name
		}
	}
	rows := b.rows[largest]
	cut := max(len(rows)/4, 1)
	b.rows[largest] = rows[cut:]
	b.LeaveOut(largest+" rows", "the bundle has at most 1 MiB: the oldest are left out", cut)
}

// Digest is the SHA-256 of bytes, as a bundle writes it.
func Digest(of []byte) string {
	sum := sha256.Sum256(of)
	return "sha256:" + hex.EncodeToString(sum[:])
}
