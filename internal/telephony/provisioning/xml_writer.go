package provisioning

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// xmlWriter writes XML. Element names are constants; values and attributes are escaped.
type xmlWriter struct {
	strings.Builder
	open []string
}

func newXMLWriter() *xmlWriter {
	x := &xmlWriter{}
	x.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	return x
}

// begin opens an element. attributes alternates names and values.
func (x *xmlWriter) begin(name string, attributes ...any) {
	x.tag(name, attributes)
	x.WriteString(">\n")
	x.open = append(x.open, name)
}

// end closes the innermost open element.
func (x *xmlWriter) end() {
	last := len(x.open) - 1
	name := x.open[last]
	x.open = x.open[:last]
	fmt.Fprintf(x, "%s</%s>\n", x.indent(), name)
}

// value writes an element with text.
func (x *xmlWriter) value(name string, value any, attributes ...any) {
	x.tag(name, attributes)
	x.WriteString(">")
	x.escape(value)
	fmt.Fprintf(x, "</%s>\n", name)
}

// empty writes an element without content.
func (x *xmlWriter) empty(name string, attributes ...any) {
	x.tag(name, attributes)
	x.WriteString("/>\n")
}

func (x *xmlWriter) tag(name string, attributes []any) {
	x.WriteString(x.indent() + "<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(x, ` %s="`, attributes[i])
		x.escape(attributes[i+1])
		x.WriteString(`"`)
	}
}

func (x *xmlWriter) indent() string { return strings.Repeat("  ", len(x.open)) }

// escape writes text in which all markup is escaped, for elements and attributes.
func (x *xmlWriter) escape(value any) { _ = xml.EscapeText(x, []byte(fmt.Sprint(value))) } // a strings.Builder returns no error

// bytes closes all open elements and returns the document.
func (x *xmlWriter) bytes() []byte {
	for len(x.open) > 0 {
		x.end()
	}
	return []byte(x.String())
}
