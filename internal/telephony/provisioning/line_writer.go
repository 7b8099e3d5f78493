package provisioning

import (
	"fmt"
	"strings"
)

// lineWriter writes files with one setting per line.
type lineWriter struct{ strings.Builder }

// set writes name = value. Line breaks in the value become spaces; Phone.sanitized has removed them already.
func (l *lineWriter) set(name string, value any) {
	fmt.Fprintf(l, "%s = %s\n", name, strings.NewReplacer("\r", " ", "\n", " ").Replace(fmt.Sprint(value)))
}

func (l *lineWriter) bytes() []byte { return []byte(l.String()) }
