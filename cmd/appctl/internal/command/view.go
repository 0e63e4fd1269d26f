package command

import (
	"fmt"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
)

// View is an answer in its three forms.
type View struct {
	// JSON is the answer for scripts.
	JSON any
	// IDs are written, one a line, when --quiet is given.
	IDs []string
	// Page writes the answer for people.
	Page func(*render.Page)
	// Remark is shown to a person after the answer; empty for none.
	Remark string
}

// Show writes an answer in the form that the flags want.
func (t *Tool) Show(v View) (err error) {
	switch {
	case t.AsJSON():
		err = render.JSON(t.Env.Stdout, v.JSON)
	case t.Quiet:
		for _, id := range v.IDs {
			fmt.Fprintln(t.Env.Stdout, id)
		}
	default:
		v.Page(render.NewPage(t.Env.Stdout))
	}
	if v.Remark != "" {
		t.Remark("%s", v.Remark)
	}
	return err
}

// Remark writes a line to a person on standard error; scripts, which read JSON or ids, do not get it.
func (t *Tool) Remark(format string, args ...any) {
	if !t.Quiet && !t.AsJSON() {
		fmt.Fprintln(t.Env.Stderr, render.Clean(fmt.Sprintf(format, args...)))
	}
}

// Detail is the view of one object, with a page for people.
func Detail(answer any, id string, page func(*render.Page)) View {
	return View{JSON: answer, IDs: []string{id}, Page: page}
}

// Fields is the view of an object as names and values; names without a value are left out.
func Fields(answer any, id string, pairs ...string) View {
	return Detail(answer, id, func(p *render.Page) { p.Fields(pairs...) })
}

// One is the view of an object by its id and a few fields.
func One(answer any, id string, pairs ...string) View {
	return Fields(answer, id, append([]string{"Id", id}, pairs...)...)
}

// Secret is the view of what cannot be shown again: with --quiet the secret alone, for scripts that keep it.
func Secret(answer any, secret string, pairs ...string) View {
	v := Fields(answer, secret, pairs...)
	v.Remark = "keep it now: it is not stored and cannot be shown again"
	return v
}

// Line is the view of an answer that is one sentence.
func Line(answer any, text string, ids ...string) View {
	return View{JSON: answer, IDs: ids, Page: func(p *render.Page) { p.Line(text) }}
}

// Table shows rows of one kind.
type Table[T any] struct {
	// Heading names the columns.
	Heading []string
	// Row returns a row's cells.
	Row func(*T) []string
	// ID returns what --quiet writes of a row; its first cell if nil.
	ID func(*T) string
	// Below writes what follows the rows of an answer, if there are any; nil for nothing.
	Below func(*render.Page, []T)
}

// View is the view of rows.
func (t Table[T]) View(found []T) View { return t.As(found, found) }

// As is the view of rows that are an answer in another form.
func (t Table[T]) As(answer any, found []T) View {
	var ids []string
	for i := range found {
		if t.ID != nil {
			ids = append(ids, t.ID(&found[i]))
		} else {
			ids = append(ids, t.Row(&found[i])[0])
		}
	}
	return View{JSON: answer, IDs: ids, Page: func(p *render.Page) {
		t.On(p, found)
		if t.Below != nil && len(found) > 0 {
			t.Below(p, found)
		}
	}}
}

// On writes rows on a page.
func (t Table[T]) On(p *render.Page, found []T) {
	var rows [][]string
	for i := range found {
		rows = append(rows, t.Row(&found[i]))
	}
	p.Table(t.Heading, rows)
}

// Under writes rows below a title; without rows it writes nothing.
func (t Table[T]) Under(p *render.Page, title string, found []T) {
	if len(found) > 0 {
		p.Section(title)
		t.On(p, found)
	}
}
