package fuzz

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
)

// mutator generates invalid input from valid input. The same seed and round generate the same input.
type mutator struct {
	*rand.Rand
	seeds [][]byte
	words []string // replacements for parts of the input
}

// oneIn returns true once in n times on average.
func (m *mutator) oneIn(n int) bool { return m.IntN(n) == 0 }

func pick[T any](m *mutator, all []T) T { return all[m.IntN(len(all))] }

// one returns a seed, changed in up to six places; one in ten is unchanged.
func (m *mutator) one() []byte {
	b := bytes.Clone(pick(m, m.seeds))
	if m.oneIn(10) {
		return b
	}
	return m.change(b)
}

// change changes bytes in one to six places, mostly few.
func (m *mutator) change(b []byte) []byte {
	for range 1 + m.IntN(1+m.IntN(6)) {
		b = pick(m, changes)(m, b)
	}
	return b[:min(len(b), most)]
}

// most limits the length of an input.
const most = 60000

var changes = []func(m *mutator, b []byte) []byte{
	(*mutator).flip, (*mutator).flip, (*mutator).overwrite, (*mutator).insert, (*mutator).remove, (*mutator).repeat, (*mutator).cut,
	(*mutator).splice, (*mutator).number, (*mutator).number, (*mutator).word, (*mutator).word, (*mutator).line, (*mutator).line,
	(*mutator).long,
}

func (m *mutator) flip(b []byte) []byte {
	if len(b) > 0 {
		b[m.IntN(len(b))] ^= 1 << m.IntN(8)
	}
	return b
}

func (m *mutator) overwrite(b []byte) []byte {
	for at, n := m.IntN(len(b)+1), m.IntN(8); at < len(b) && n >= 0; at, n = at+1, n-1 {
		b[at] = pick(m, []byte{0, 1, 0x7f, 0x80, 0xff, '\r', '\n', ' ', '"', '<', ';', ':', '%', byte(m.IntN(256))})
	}
	return b
}

func (m *mutator) insert(b []byte) []byte {
	some := make([]byte, 1+m.IntN(16))
	for i := range some {
		some[i] = byte(m.IntN(256))
	}
	return m.put(b, m.IntN(len(b)+1), some)
}

// put inserts bytes.
func (m *mutator) put(b []byte, at int, some []byte) []byte {
	return append(append(bytes.Clone(b[:at]), some...), b[at:]...)
}

// part returns a random range of b, of up to n bytes.
func (m *mutator) part(b []byte, n int) (from, to int) {
	from = m.IntN(len(b) + 1)
	return from, min(len(b), from+m.IntN(n+1))
}

func (m *mutator) remove(b []byte) []byte {
	from, to := m.part(b, 40)
	return append(b[:from], b[to:]...)
}

func (m *mutator) repeat(b []byte) []byte {
	from, to := m.part(b, 200)
	return m.put(b, to, bytes.Repeat(b[from:to], 1+m.IntN(4)))
}

func (m *mutator) cut(b []byte) []byte {
	if m.oneIn(3) {
		return b[:m.IntN(len(b)+1)]
	}
	return b
}

// splice appends the end of another seed.
func (m *mutator) splice(b []byte) []byte {
	other := pick(m, m.seeds)
	return append(b[:m.IntN(len(b)+1)], other[m.IntN(len(other)+1):]...)
}

var digits = regexp.MustCompile(`[0-9]+`)

// number replaces a number by one at which arithmetic often fails.
func (m *mutator) number(b []byte) []byte {
	all := digits.FindAllIndex(b, -1)
	if len(all) == 0 {
		return m.flip(b)
	}
	at := pick(m, all)
	n := pick(m, []string{"0", "-1", "1", "127", "128", "255", "256", "32768", "65535", "65536", "2147483647", "2147483648", "4294967295",
		"4294967296", "9223372036854775807", "18446744073709551616", "00000000000000000000001", "1e9", strconv.Itoa(m.IntN(200))})
	return append(append(bytes.Clone(b[:at[0]]), n...), b[at[1]:]...)
}

// word inserts a word of the protocol, mostly in place of another.
func (m *mutator) word(b []byte) []byte {
	if len(m.words) == 0 {
		return m.overwrite(b)
	}
	from, to := m.part(b, 12)
	for from > 0 && from < len(b) && !bytes.ContainsRune([]byte(" :;=\n"), rune(b[from-1])) {
		from--
	}
	return append(append(bytes.Clone(b[:from]), pick(m, m.words)...), b[max(from, to):]...)
}

// line deletes, doubles, moves or copies a line from another seed.
func (m *mutator) line(b []byte) []byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	i, j := m.IntN(len(lines)), m.IntN(len(lines))
	switch m.IntN(4) {
	case 0:
		lines = append(lines[:i], lines[i+1:]...)
	case 1:
		lines[i] = bytes.Repeat(lines[i], 2+m.IntN(50))
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	default:
		lines[i] = pick(m, bytes.SplitAfter(pick(m, m.seeds), []byte("\n")))
	}
	return bytes.Join(lines, nil)
}

// long makes a part much longer than valid.
func (m *mutator) long(b []byte) []byte {
	if !m.oneIn(4) {
		return b
	}
	return m.put(b, m.IntN(len(b)+1), bytes.Repeat([]byte{byte(' ' + m.IntN(95))}, 1<<m.IntN(15)))
}

var (
	dotted = regexp.MustCompile(`[0-9]{1,3}(\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})`)
	named  = regexp.MustCompile(`(?i)[a-z0-9-]+(\.[a-z0-9-]+)*\.(com|net|org|example|invalid|gmd|uk|xx)\b`)
)

// home replaces all addresses and names by those of this machine, so that the server under test sends nothing to
// other machines.
func home(b []byte) []byte {
	return named.ReplaceAll(dotted.ReplaceAll(b, []byte("127$1")), []byte("localhost"))
}

// wired returns a text with the line ends of SIP and SDP.
func wired(text string) []byte {
	return []byte(strings.ReplaceAll(strings.TrimLeft(text, "\n"), "\n", "\r\n"))
}
