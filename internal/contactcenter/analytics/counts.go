package analytics

import (
	"encoding/binary"
	"slices"
)

// Counts sums a set of calls.
type Counts struct {
	Total, Inbound, Outbound, Internal     int64
	Answered, Missed, Abandoned, Voicemail int64
	Queued, WithinServiceLevel             int64 // calls that went through a queue, and those answered within the service level
	Ring, Queue, Talk, Hold                int64 // seconds
	Callers                                callers
}

// add adds other calls.
func (c *Counts) add(o *Counts) {
	for i, v := range o.numbers() {
		*c.fields()[i] += v
	}
	c.Callers.add(o.Callers)
}

// fields returns pointers to the numbers in the order of the database columns.
func (c *Counts) fields() [14]*int64 {
	return [14]*int64{&c.Total, &c.Inbound, &c.Outbound, &c.Internal, &c.Answered, &c.Missed, &c.Abandoned, &c.Voicemail, &c.Queued,
		&c.WithinServiceLevel, &c.Ring, &c.Queue, &c.Talk, &c.Hold}
}

func (c *Counts) numbers() (all [14]int64) {
	for i, f := range c.fields() {
		all[i] = *f
	}
	return all
}

// callers counts calls by the remote number. It holds a keyed digest of the number, not the number itself.
type callers map[uint64]uint32

func (c *callers) add(o callers) {
	if *c == nil {
		*c = make(callers, len(o))
	}
	for id, n := range o {
		(*c)[id] += n
	}
}

// repeatCallers returns the number of callers with more than one call.
func (c callers) repeatCallers() (n int) {
	for _, calls := range c {
		if calls > 1 {
			n++
		}
	}
	return n
}

// callerSize is the stored size of one caller: 8 bytes digest, 4 bytes count.
const callerSize = 12

// encode returns the stored form, sorted by digest.
func (c callers) encode() []byte {
	ids := make([]uint64, 0, len(c))
	for id := range c {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	out := make([]byte, 0, callerSize*len(ids))
	for _, id := range ids {
		out = binary.LittleEndian.AppendUint64(out, id)
		out = binary.LittleEndian.AppendUint32(out, c[id])
	}
	return out
}

func decodeCallers(b []byte) callers {
	c := make(callers, len(b)/callerSize)
	for ; len(b) >= callerSize; b = b[callerSize:] {
		c[binary.LittleEndian.Uint64(b)] = binary.LittleEndian.Uint32(b[8:])
	}
	return c
}
