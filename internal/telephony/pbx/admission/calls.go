package admission

import (
	"fmt"
	"sync"

	"soniq/internal/platform/limit"
)

// Limits are the most calls in progress at once; 0 is no limit.
type Limits struct {
	Device, User, Organisation int
}

// Parties are those that a call counts for; empty ones are not counted.
type Parties struct {
	Device, User, Org string
}

// Full reports which limit refuses a call.
type Full struct {
	Limit *limit.Limit
	Most  int
}

// Error returns the text for users and for the Warning header.
func (f *Full) Error() string {
	return fmt.Sprintf("the %s has %d calls in progress, which is the limit; end one, or raise %s", f.Limit.Per, f.Most, f.Limit.Setting)
}

// Calls counts the calls in progress. The zero value is ready for use. It is safe for concurrent use.
type Calls struct {
	mu      sync.Mutex // guards running
	running map[string]int
}

// Enter counts a call for all its parties, or for none if one of them is at its limit. Call Leave when the call ends.
func (c *Calls) Enter(p Parties, l Limits) *Full {
	c.mu.Lock()
	defer c.mu.Unlock()
	full := c.full(p, l)
	if full == nil {
		c.add(p, 1)
	}
	return full
}

// EnterAlways counts a call to which no limit applies: an emergency call, or one that continues after a restart.
func (c *Calls) EnterAlways(p Parties) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(p, 1)
}

// Leave ends the count of a call.
func (c *Calls) Leave(p Parties) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(p, -1)
}

// Running returns the number of calls in progress of a device, user or organisation.
func (c *Calls) Running(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[id]
}

func (c *Calls) full(p Parties, l Limits) *Full {
	switch {
	case c.isFull(p.Device, l.Device):
		return &Full{limit.CallsOfDevice, l.Device}
	case c.isFull(p.User, l.User):
		return &Full{limit.CallsOfUser, l.User}
	case c.isFull(p.Org, l.Organisation):
		return &Full{limit.CallsOfOrganisation, l.Organisation}
	}
	return nil
}

func (c *Calls) isFull(id string, most int) bool {
	return id != "" && most > 0 && c.running[id] >= most
}

func (c *Calls) add(p Parties, n int) {
	if c.running == nil {
		c.running = map[string]int{}
	}
	for _, id := range [...]string{p.Device, p.User, p.Org} {
		if id == "" {
			continue
		}
		if c.running[id] += n; c.running[id] == 0 {
			delete(c.running, id)
		}
	}
}
