package provisioning

import (
	"fmt"
	"strings"
)

// lines writes files of one setting per line.
type lines struct{ strings.Builder }

// set writes name = value. A value is on one line, as Phone.safe leaves it.
func (l *lines) set(name string, value any) {
	fmt.Fprintf(l, "%s = %s\n", name, strings.NewReplacer("\r", " ", "\n", " ").Replace(fmt.Sprint(value)))
}

func (l *lines) bytes() []byte { return []byte(l.String()) }
