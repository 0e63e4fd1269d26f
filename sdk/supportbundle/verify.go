package supportbundle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Verify reads a bundle to its end and returns its manifest. It is an error, which names the line, where a line was
// changed, added or taken away since the bundle was written, and where a value is not of its field's kind or a field
// not in the list of this version: what a bundle of another maker has in it is not let through unseen.
func Verify(file io.Reader) (*Manifest, error) {
	content, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes, which no bundle is", MaxBytes)
	}
	head, body, _ := bytes.Cut(content, []byte("\n"))
	var first struct{ Manifest *Manifest }
	if err := strict(head, &first); err != nil || first.Manifest == nil {
		return nil, errors.Join(errors.New("line 1 is not a manifest"), err)
	}
	manifest := first.Manifest
	if manifest.Format != Format {
		return nil, fmt.Errorf("the bundle is of the format %q: this program reads %s", manifest.Format, Format)
	}
	return manifest, manifest.covers(body)
}

// covers checks the lines after the manifest: each section's rows, in order, and nothing else.
func (m *Manifest) covers(body []byte) error {
	lines, number := bufio.NewScanner(bytes.NewReader(body)), 1
	lines.Buffer(nil, MaxBytes+1)
	for _, of := range m.Sections {
		section, known := named(of.Name)
		if !known || !slices.Equal(of.Fields, section.names()) {
			return fmt.Errorf("section %s or its fields are not known to this program", of.Name)
		}
		var seen bytes.Buffer
		for range of.Rows {
			if !lines.Scan() {
				return fmt.Errorf("section %s has rows that are missing after line %d", of.Name, number)
			}
			number++
			if err := section.check(lines.Bytes()); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			seen.Write(lines.Bytes())
			seen.WriteByte('\n')
		}
		if Digest(seen.Bytes()) != of.Digest {
			return fmt.Errorf("section %s was changed: its lines do not have the digest in the manifest", of.Name)
		}
	}
	if lines.Scan() {
		return fmt.Errorf("line %d belongs to no section of the manifest", number+1)
	}
	return lines.Err()
}

// check checks a line of a section.
func (s Section) check(line []byte) error {
	var given struct {
		Section string
		Row     map[string]json.RawMessage
	}
	if err := strict(line, &given); err != nil {
		return err
	}
	if given.Section != s.Name {
		return fmt.Errorf("a row of section %s is where one of %s belongs", given.Section, s.Name)
	}
	for name, value := range given.Row {
		field, err := s.field(name)
		if err != nil {
			return err
		}
		if err := field.Kind.read(value); err != nil {
			return fmt.Errorf("%s.%s: %w", s.Name, name, err)
		}
	}
	return nil
}

// strict decodes a line that is one document and has no field that is not known.
func strict(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("not a line of a bundle: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("not a line of a bundle: something follows the document")
	}
	return nil
}
