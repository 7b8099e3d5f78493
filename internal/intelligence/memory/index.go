package memory

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// exactBelow is the number of passages up to which every allowed passage is ranked exactly; codes are used only
// above.
const exactBelow = 1024

// index is the in-memory search index of one organisation: about 150 bytes per passage, and 330 more to rank it. All
// of it can be rebuilt from the database, and results are always read from there. An outdated index can therefore
// miss a passage but never return a deleted one.
type index struct {
	org   string
	model Model

	mu            sync.RWMutex // guards the fields below
	keys          []int64      // ascending, except for those of the same moment
	filters       []filterFields
	words         *invertedIndex
	cache         vectorCache
	cacheLimit    int          // limit of the cache in bytes; 0: no cache
	codes         *binaryCodes // nil below exactBelow passages
	codedPassages []int32      // passage of each code: those with a vector of the model
	sample        [][]float32
	initialSize   int   // number of passages when the index was built
	last          int64 // highest key
	asOf          db.Time
}

// filterFields are the fields of a passage that filters compare.
type filterFields struct {
	at        int64 // microseconds
	agent     uint32
	queue     uint32
	kind      uint8
	direction uint8
}

// newIndex returns an empty index that caches vectors and words of passages up to a number of bytes.
func newIndex(org string, m Model, room int) *index {
	return &index{org: org, model: m, words: newInvertedIndex(), cacheLimit: room}
}

// add appends a passage. The caller holds the lock.
func (x *index) add(r row) {
	at := len(x.keys)
	x.last = max(x.last, r.key)
	x.keys = append(x.keys, r.key)
	x.filters = append(x.filters, filterFields{r.at.UnixMicro(), idHash(r.agent), idHash(r.queue), kindNumber(r.kind),
		directionNumber(r.direction)})
	x.words.add(r.terms)
	x.cacheRow(r)
	x.addVector(at, r)
}

// cacheRow caches a passage's vector and words up to the limit. The passages from the first that exceeds it on are
// read from the database when needed.
func (x *index) cacheRow(r row) {
	if x.cache.full = x.cache.full || x.cache.bytes > x.cacheLimit; x.cache.full {
		return
	}
	numbers := make([]uint64, len(r.terms))
	for i, t := range r.terms {
		numbers[i] = uint64(x.words.postings[t.term].id)<<8 | uint64(t.count)
	}
	v := r.vector
	if r.model != x.model.Name {
		v = quantised{}
	}
	x.cache.add(v, numbers)
}

// rows returns the cached passages at some positions, and the keys of the others.
func (x *index) rows(places []int32) (rows []row, keys []int64) {
	rows = make([]row, 0, len(places))
	words := make([]termCount, 0, 64*len(places))
	for _, at := range places {
		if int(at) >= x.cache.n {
			keys = append(keys, x.keys[at])
			continue
		}
		from := len(words)
		r := row{key: x.keys[at], model: x.model.Name}
		r.vector, words = x.cache.get(int(at), x.words.terms, words)
		r.terms = words[from:len(words):len(words)]
		rows = append(rows, r)
	}
	return rows, keys
}

// addVector collects the first vectors as a sample. Once there are exactBelow of them it computes the mean and the
// codes.
func (x *index) addVector(at int, r row) {
	if r.model != x.model.Name || x.model.Name == "" || len(r.vector.values) == 0 {
		return
	}
	x.codedPassages = append(x.codedPassages, int32(at))
	v := r.vector.floats()
	if x.codes != nil {
		x.codes.add(v)
		return
	}
	x.sample = append(x.sample, v)
	if len(x.sample) < exactBelow {
		return
	}
	x.codes = newBinaryCodes(len(v), x.sample)
	for _, s := range x.sample {
		x.codes.add(s)
	}
	x.sample = nil
}

// resumeFrom returns the key to continue reading at, and the known keys from there on. Concurrent transactions, as on
// PostgreSQL, may become visible in another order than their keys; therefore the last moments are read again. With a
// single writer overlap is 0.
func (x *index) resumeFrom(overlap time.Duration) (int64, map[int64]bool) {
	if x.asOf.IsZero() {
		return 0, nil
	}
	if overlap == 0 {
		return x.last + 1, nil
	}
	known := map[int64]bool{}
	for i := len(x.keys) - 1; i >= 0 && x.keys[i] >= keyAt(x.asOf.Add(-2*overlap)); i-- {
		known[x.keys[i]] = true
	}
	return keyAt(x.asOf.Add(-overlap)), known
}

// size returns the approximate size of the index in bytes.
func (x *index) size() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := 40*len(x.keys) + x.words.size() + 4*len(x.codedPassages) + x.cache.bytes
	if x.codes != nil {
		n += len(x.codes.scales) * (8*x.codes.words + 6)
	}
	return n + len(x.sample)*4*x.model.Dimensions
}

// filter restricts a search. Zero fields do not restrict.
type filter struct {
	since, until int64
	agent, queue uint32
	kinds        uint8 // bit per kind; 0 for all
	direction    uint8
	shown        map[int64]bool // keys of the passages that the user sees; nil: all
}

func (f *filter) allows(m *filterFields, key int64) bool {
	return (f.shown == nil || f.shown[key]) && m.at >= f.since && m.at < f.until &&
		(f.agent == 0 || f.agent == m.agent) && (f.queue == 0 || f.queue == m.queue) &&
		(f.kinds == 0 || f.kinds>>m.kind&1 == 1) && (f.direction == 0 || f.direction == m.direction)
}

// allows reports whether a filter allows the passage at a position.
func (x *index) allows(f *filter, at int) bool { return f.allows(&x.filters[at], x.keys[at]) }

// candidates returns the passages to rank exactly and the rarity of the query's words. They are the nearest by vector
// and the best by words, or all allowed passages of a small index. For passages that are not cached it returns the
// keys.
func (x *index) candidates(query []Term, vector []float32, f filter, near, byWord int) ([]row, []int64, rarities) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	rows, keys := x.rows(x.candidatePositions(query, vector, f, near, byWord))
	return rows, keys, x.rarities(query)
}

// candidatePositions returns the positions of the candidates.
func (x *index) candidatePositions(query []Term, vector []float32, f filter, near, byWord int) []int32 {
	if len(x.keys) <= exactBelow {
		return x.allowedPositions(f)
	}
	picked := map[int32]bool{}
	for _, h := range x.words.search(query, func(at int) bool { return x.allows(&f, at) }, byWord) {
		picked[h.at] = true
	}
	for _, h := range x.nearest(vector, f, near) {
		picked[h.at] = true
	}
	places := make([]int32, 0, len(picked))
	for at := range picked {
		places = append(places, at)
	}
	slices.Sort(places)
	return places
}

// allowedPositions returns the positions of all passages that the filter allows.
func (x *index) allowedPositions(f filter) []int32 {
	var places []int32
	for i := range x.filters {
		if x.allows(&f, i) {
			places = append(places, int32(i))
		}
	}
	return places
}

// nearest returns the k passages with the highest estimated similarity. It scans the codes on two goroutines.
func (x *index) nearest(vector []float32, f filter, k int) []hit {
	if len(vector) == 0 {
		return nil
	}
	best := newTopK(k)
	if x.codes == nil {
		for i, v := range x.sample {
			if at := x.codedPassages[i]; x.allows(&f, int(at)) {
				best.add(int(at), dot(vector, v))
			}
		}
		return best.best()
	}
	p := x.codes.probe(vector)
	half, n := newTopK(k), x.codes.len()
	reach := x.codes.maxDistance(&p, k, func(i int) bool { return x.allows(&f, int(x.codedPassages[i])) })
	var wait sync.WaitGroup
	wait.Go(func() { x.scan(&p, f, half, n/2, n, reach) })
	x.scan(&p, f, best, 0, n/2, reach)
	wait.Wait()
	for _, h := range half.best() {
		best.add(int(h.at), h.score)
	}
	return best.best()
}

// scan estimates codes one after the other. It checks the filter last, because that reads other memory.
func (x *index) scan(p *probe, f filter, best *topK, from, to, reach int) {
	x.codes.near(p, from, to, reach, func(i int) {
		score := x.codes.estimate(p, i)
		if score <= best.threshold {
			return
		}
		if at := int(x.codedPassages[i]); x.allows(&f, at) {
			best.add(at, score)
		}
	})
}

// rarities holds the statistics of an organisation's passages for the words of a query.
type rarities struct {
	idf     map[Term]float64
	average float64 // words per passage
}

func (x *index) rarities(query []Term) rarities {
	r := rarities{idf: map[Term]float64{}, average: x.words.average()}
	for _, t := range query {
		r.idf[t] = x.words.idf(t)
	}
	return r
}

// raritiesOfRows computes them from the passages themselves, if no index is used.
func raritiesOfRows(query []Term, rows []row) rarities {
	with, words := map[Term]int{}, 0
	for _, r := range rows {
		for _, t := range r.terms {
			with[t.term]++
			words += int(t.count)
		}
	}
	out := rarities{idf: map[Term]float64{}, average: float64(words) / float64(max(len(rows), 1))}
	for _, t := range query {
		out.idf[t] = rarity(with[t], len(rows))
	}
	return out
}

// idHash returns a 32-bit hash of an id; 0 means none.
func idHash(id string) uint32 {
	if id == "" {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return max(h.Sum32(), 1)
}

// Kinds and directions by number, as stored in filterFields.
var (
	kindNames      = []string{KindSummary, KindTranscript, "note", "voicemail", "sms", "fact"}
	directionNames = []string{"", "inbound", "outbound", "internal"}
)

func kindNumber(name string) uint8 { return uint8(max(slices.Index(kindNames, name), 0)) }

func directionNumber(name string) uint8 { return uint8(max(slices.Index(directionNames, name), 0)) }
