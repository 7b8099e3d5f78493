package engine

import (
	"cmp"
	"math"
	"slices"
)

// corrections finds the words of a text that sound like targets.
func (all *targets) fixes(text []token) []fix {
	if all == nil || len(all.list) == 0 {
		return nil
	}
	s := search{text: text, all: all}
	for from := range text {
		s.begins(from)
	}
	s.found = s.best()
	for _, f := range slices.Clone(s.found) {
		if f.of > 1 && f.part != wholeTerm {
			s.beside(f)
		}
	}
	return s.best()
}

// targetSearch is one search for targets in a text.
type search struct {
	text   []token
	all    *targets
	found  []fix
	rows   []float32 // scratch memory for the rows of the edit distance
	phones []phoneme // scratch memory for the phones of a run
}

// wordRun is a sequence of words of a text, with the conditions for replacing it by a term.
type run struct {
	from, to int
	phones   []phoneme
	weight   float32
	letters  string  // lower case, without separators
	limit    float64 // maximum distance
	cost     float64 // distance added for the words around it
	familiar bool    // all words are common
}

// wordRun returns a run of words; ok is false if they belong to different phrases or contain a number.
func (s *search) run(from, to int) (r run, ok bool) {
	r = run{from: from, to: to, familiar: true, phones: s.phones[:0]}
	letters := make([]byte, 0, 32)
	for i, t := range s.text[from:to] {
		if t.number || i > 0 && (t.before != "" || !goesOn(s.text[from+i-1])) {
			return r, false
		}
		if i > 0 && s.text[from+i-1].after != "" {
			r.cost += commaCost
		}
		r.phones = append(r.phones, t.phones...)
		letters = append(letters, t.plain...)
		r.familiar = r.familiar && t.chance >= rareWord
	}
	s.phones = r.phones
	r.letters, r.weight, r.limit = string(letters), soundWeight(r.phones), limitOf(s.text[from:to])
	for _, edge := range []token{s.text[from], s.text[to-1]} {
		if to-from > 1 && stopWords[edge.plain] {
			r.cost += edgeCost
		}
	}
	return r, true
}

// mayContinue reports whether a name may continue after a word: recognisers write commas into names that they do not
// know.
func goesOn(t token) bool { return t.after == "" || t.after == "," }

// searchFrom searches for targets in the words that begin at an index.
func (s *search) begins(from int) {
	for to := from + 1; to <= min(len(s.text), from+longestRun); to++ {
		r, ok := s.run(from, to)
		if !ok {
			return
		}
		before := len(s.found)
		for _, i := range s.all.exact[r.letters] {
			s.take(r, &s.all.list[i], 0, exactLimit)
		}
		if len(s.found) == before && r.limit > 0 && r.weight >= leastWeight {
			s.near(r)
			s.found = append(s.found[:before], clear(s.found[before:])...)
		}
	}
}

// searchPhonetic searches for targets that sound like a run. Targets are sorted by their phones, so that those with a
// common prefix share the rows of the edit distance. They are skipped together once the prefix alone is too far.
func (s *search) near(r run) {
	heaviest := r.weight / float32(1-heavyGain*r.limit)
	most := float32(r.reach()*r.limit*r.trust(heaviest)) * heaviest
	width := len(r.phones) + 1
	if need := width * (s.all.longest + 1); len(s.rows) < need {
		s.rows = make([]float32, need)
	}
	row := func(i int) []float32 { return s.rows[i*width : (i+1)*width] }
	firstRow(row(0), r.phones)
	left := math.MaxInt // length of the prefix that was too far
	for i := range s.all.spoken {
		w := &s.all.spoken[i]
		if w.shared >= left {
			continue
		}
		left = math.MaxInt
		for k := w.shared; k < len(w.phones); k++ {
			if nextRow(row(k+1), row(k), w.phones[k], k == 0, r.phones) > most {
				left = k + 1
				break
			}
		}
		if left == math.MaxInt {
			s.weigh(r, w, float64(row(len(w.phones))[width-1]/max(r.weight, w.weight)))
		}
	}
}

// addIfNear adds a target at a phonetic distance, unless the distance of sound and letters together is beyond the
// limit.
func (s *search) weigh(r run, w *spokenWay, sound float64) {
	t := &s.all.list[w.target]
	limit := r.limit * r.trust(t.weight)
	if sound > r.reach()*limit {
		return
	}
	spelt := float64(wordDistance(r.letters, t.plain)) / float64(max(len(r.letters), len(t.plain)))
	s.take(r, t, min(sound, (1-spellingShare)*sound+spellingShare*spelt), limit)
}

// addCorrection adds a correction with a distance, unless that is beyond the limit.
func (s *search) take(r run, t *target, score, limit float64) {
	n := r.to - r.from
	score += r.cost + mergedCost*math.Abs(float64(n-len(t.words)))
	if score < limit && n <= 2*len(t.words)+1 {
		s.found = append(s.found, fix{r.from, r.to, t, score, float64(t.weight) * (limit - score + 0.02)})
	}
}

// unambiguous returns the best correction of a run; none if another is about as near, because either could be meant.
func clear(found []fix) []fix {
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b fix) int { return cmp.Compare(a.score, b.score) })
	best := found[0]
	for _, f := range found[1:] {
		if f.plain != best.plain && best.score > unsure && f.score < best.score+clearly {
			return nil
		}
	}
	return found[:1]
}

// limitFactor returns the part of a limit that applies to a target of a weight: less for a short target, and little
// if all words of the run are common.
func (r run) trust(weight float32) float64 {
	full := fullWeight
	switch {
	case weight >= heavyWeight:
		return heavyGain
	case r.familiar:
		full = familiarWeight
	}
	return min(1, max(0, float64(weight)-1)/(full-1))
}

// soundLimitFactor returns the factor of the limit up to which the phonetic distance alone may be: the letters of one
// word may compensate for it.
func (r run) reach() float64 {
	if r.to-r.from > 1 {
		return 1
	}
	return reach
}

// distanceLimit returns the maximum distance of words from a term, by how common the words are.
func limitOf(words []token) float64 {
	strange, named, familiar := 0, 0, 0
	for _, t := range words {
		switch {
		case t.chance == 0:
			strange++
		case t.named && t.chance < 2*rareWord:
			named++
		case t.chance >= rareWord:
			familiar++
		}
	}
	n := len(words)
	switch {
	case strange == n:
		return strangeLimit
	case strange > 0 && strange+named == n:
		return (strangeLimit + mixedLimit) / 2
	case strange > 0:
		return mixedLimit
	case named == n:
		return capitalLimit
	case n > 1:
		return severalLimit
	case familiar > 0:
		return 0
	}
	return ordinaryLimit
}

// searchNeighbours searches for the other words of a name of which one was found: they may be farther from the
// recognised words.
func (s *search) beside(f fix) {
	for from := max(f.from-3, 0); from < f.from; from++ {
		if goesOn(s.text[f.from-1]) {
			s.besideIn(from, f.from, f, -1)
		}
	}
	for to := f.to + 1; to <= min(f.to+3, len(s.text)); to++ {
		if goesOn(s.text[f.to-1]) {
			s.besideIn(f.to, to, f, 1)
		}
	}
}

// searchNeighbour compares a run with the word of a name directly before (step -1) or after (step 1) the one that was
// found.
func (s *search) besideIn(from, to int, f fix, step int) {
	r, ok := s.run(from, to)
	if !ok || r.limit <= 0 {
		return
	}
	r.limit = r.limit*anchoredGain + anchoredMore
	for i := range s.all.spoken {
		w := &s.all.spoken[i]
		if t := &s.all.list[w.target]; t.term == f.term && t.part == f.part+step {
			s.weigh(r, w, soundsDiffer(w.phones, r.phones))
		}
	}
}

// bestCombination returns the non-overlapping corrections with the largest total gain.
func (s *search) best() []fix {
	slices.SortStableFunc(s.found, func(a, b fix) int { return a.to - b.to })
	n := len(s.text)
	gain, last := make([]float64, n+1), make([]int, n+1)
	at := 0
	for to := 1; to <= n; to++ {
		gain[to], last[to] = gain[to-1], -1
		for ; at < len(s.found) && s.found[at].to == to; at++ {
			if v := gain[s.found[at].from] + s.found[at].gain; v > gain[to] {
				gain[to], last[to] = v, at
			}
		}
	}
	var chosen []fix
	for to := n; to > 0; {
		if last[to] < 0 {
			to--
			continue
		}
		chosen = append(chosen, s.found[last[to]])
		to = s.found[last[to]].from
	}
	slices.Reverse(chosen)
	return chosen
}

// wordDistance returns the edit distance (Levenshtein) of two words.
func wordDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			v := diagonal
			if a[i] != b[j] {
				v = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], v
		}
	}
	return row[len(b)]
}
