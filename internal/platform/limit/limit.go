// Package limit lists the limits that keep one party from taking what all need: memory, processor time, places. docs/limits.md is made
// from it.
package limit

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Limit bounds what one party can take. It is declared once, as a variable of this package, and listed in All.
type Limit struct {
	Name     string // such as downloads_at_once; also the label of the metric
	Default  int64  // in Unit
	Unit     string // a unit of this package
	Per      string // a party of this package
	Protects string // what it protects, as a sentence part in lower case
	Code     string // error code of what is refused; "" if nothing is refused by a code
	Setting  string // flag that changes the limit; "" if it is fixed

	refused atomic.Int64
}

// Units of limits.
const (
	Count        = ""
	Bytes        = "bytes"
	Milliseconds = "ms"
	Seconds      = "s"
	PerSecond    = "per second"
	PerMinute    = "per minute"
)

// Parties that limits count for.
const (
	PerValue        = "value" // one expression, file, download
	PerCall         = "call"
	PerDevice       = "device"
	PerUser         = "user"
	PerCredential   = "key or user"
	PerSession      = "browser session"
	PerAddress      = "address"
	PerOrganisation = "organisation"
	PerSource       = "source"
	PerMachine      = "machine"
)

// Metric is the name of the metric that counts refusals. Its label limit has the name of the limit.
const Metric = "soniq_limit_refusals_total"

// Int returns the value as a number.
func (l *Limit) Int() int { return int(l.Default) }

// Duration returns the value of a limit in ms or s.
func (l *Limit) Duration() time.Duration {
	if l.Unit == Seconds {
		return time.Duration(l.Default) * time.Second
	}
	return time.Duration(l.Default) * time.Millisecond
}

// Refuse counts a refusal.
func (l *Limit) Refuse() { l.refused.Add(1) }

// Refused returns the number of refusals since the start.
func (l *Limit) Refused() int64 { return l.refused.Load() }

// String returns the value with its unit.
func (l *Limit) String() string {
	switch {
	case l.Unit == Bytes && l.Default >= 1<<20 && l.Default%(1<<20) == 0:
		return fmt.Sprintf("%d MB", l.Default>>20)
	case l.Unit == Bytes && l.Default >= 1<<10 && l.Default%(1<<10) == 0:
		return fmt.Sprintf("%d kB", l.Default>>10)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", l.Default, l.Unit))
}

// All returns every limit, by subject. A file of this package declares the limits of a subject, and a slice of them.
func All() []*Limit { return slices.Concat(memory, calls, http) }
