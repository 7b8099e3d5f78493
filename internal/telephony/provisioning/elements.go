package provisioning

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// elements writes XML: names are ours, values and attributes are escaped.
type elements struct {
	strings.Builder
	open []string
}

func newElements() *elements {
	x := &elements{}
	x.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	return x
}

// begin opens an element with attributes, name and value by turns.
func (x *elements) begin(name string, attributes ...any) {
	x.tag(name, attributes)
	x.WriteString(">\n")
	x.open = append(x.open, name)
}

// end closes the element that was opened last.
func (x *elements) end() {
	last := len(x.open) - 1
	name := x.open[last]
	x.open = x.open[:last]
	fmt.Fprintf(x, "%s</%s>\n", x.indent(), name)
}

// value writes an element with text in it.
func (x *elements) value(name string, value any, attributes ...any) {
	x.tag(name, attributes)
	x.WriteString(">")
	x.escape(value)
	fmt.Fprintf(x, "</%s>\n", name)
}

// empty writes an element with nothing in it.
func (x *elements) empty(name string, attributes ...any) {
	x.tag(name, attributes)
	x.WriteString("/>\n")
}

func (x *elements) tag(name string, attributes []any) {
	x.WriteString(x.indent() + "<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(x, ` %s="`, attributes[i])
		x.escape(attributes[i+1])
		x.WriteString(`"`)
	}
}

func (x *elements) indent() string { return strings.Repeat("  ", len(x.open)) }

// escape writes text; nothing in it is taken for markup, in an element or in an attribute.
func (x *elements) escape(value any) { _ = xml.EscapeText(x, []byte(fmt.Sprint(value))) } // a Builder takes everything

// bytes closes what is open.
func (x *elements) bytes() []byte {
	for len(x.open) > 0 {
		x.end()
	}
	return []byte(x.String())
}
