package speech

import (
	"cmp"
	"math"
	"slices"

	"soniq/internal/intelligence/engine/nlp"
)

// corrections finds the words of a text that sound like targets.
func (all *targetIndex) corrections(text []token) []correction {
	if all == nil || len(all.list) == 0 {
		return nil
	}
	s := targetSearch{text: text, all: all}
	for from := range text {
		s.searchFrom(from)
	}
	s.found = s.bestCombination()
	for _, f := range slices.Clone(s.found) {
		if f.wordCount > 1 && f.wordIndex != wholeTerm {
			s.searchNeighbours(f)
		}
	}
	return s.bestCombination()
}

// targetSearch is one search for targets in a text.
type targetSearch struct {
	text   []token
	all    *targetIndex
	found  []correction
	rows   []float32 // scratch memory for the rows of the edit distance
	phones []phoneme // scratch memory for the phones of a run
}

// wordRun is a sequence of words of a text, with the conditions for replacing it by a term.
type wordRun struct {
	from, to    int
	phones      []phoneme
	weight      float32
	letters     string  // lower case, without separators
	maxDistance float64 // maximum distance
	cost        float64 // distance added for the words around it
	common      bool    // all words are common
}

// wordRun returns a run of words; ok is false if they belong to different phrases or contain a number.
func (s *targetSearch) wordRun(from, to int) (r wordRun, ok bool) {
	r = wordRun{from: from, to: to, common: true, phones: s.phones[:0]}
	letters := make([]byte, 0, 32)
	for i, t := range s.text[from:to] {
		if t.number || i > 0 && (t.before != "" || !mayContinue(s.text[from+i-1])) {
			return r, false
		}
		if i > 0 && s.text[from+i-1].after != "" {
			r.cost += commaCost
		}
		r.phones = append(r.phones, t.phones...)
		letters = append(letters, t.plain...)
		r.common = r.common && t.probability >= commonWordProb
	}
	s.phones = r.phones
	r.letters, r.weight, r.maxDistance = string(letters), phoneWeightSum(r.phones), distanceLimit(s.text[from:to])
	for _, edge := range []token{s.text[from], s.text[to-1]} {
		if to-from > 1 && nlp.IsStopWord(edge.plain) {
			r.cost += stopWordEdgeCost
		}
	}
	return r, true
}

// mayContinue reports whether a name may continue after a word: recognisers write commas into names that they do not
// know.
func mayContinue(t token) bool { return t.after == "" || t.after == "," }

// searchFrom searches for targets in the words that begin at an index.
func (s *targetSearch) searchFrom(from int) {
	for to := from + 1; to <= min(len(s.text), from+maxRunWords); to++ {
		r, ok := s.wordRun(from, to)
		if !ok {
			return
		}
		before := len(s.found)
		for _, i := range s.all.exact[r.letters] {
			s.addCorrection(r, &s.all.list[i], 0, sameLettersLimit)
		}
		if len(s.found) == before && r.maxDistance > 0 && r.weight >= minTermWeight {
			s.searchPhonetic(r)
			s.found = append(s.found[:before], unambiguous(s.found[before:])...)
		}
	}
}

// searchPhonetic searches for targets that sound like a run. Targets are sorted by their phones, so that those with a
// common prefix share the rows of the edit distance. They are skipped together once the prefix alone is too far.
func (s *targetSearch) searchPhonetic(r wordRun) {
	heaviest := r.weight / float32(1-longTermLimitFactor*r.maxDistance)
	most := float32(r.soundLimitFactor()*r.maxDistance*r.limitFactor(heaviest)) * heaviest
	width := len(r.phones) + 1
	if need := width * (s.all.longest + 1); len(s.rows) < need {
		s.rows = make([]float32, need)
	}
	row := func(i int) []float32 { return s.rows[i*width : (i+1)*width] }
	firstRow(row(0), r.phones)
	left := math.MaxInt // length of the prefix that was too far
	for i := range s.all.pronunciations {
		w := &s.all.pronunciations[i]
		if w.commonPrefix >= left {
			continue
		}
		left = math.MaxInt
		for k := w.commonPrefix; k < len(w.phones); k++ {
			if nextRow(row(k+1), row(k), w.phones[k], k == 0, r.phones) > most {
				left = k + 1
				break
			}
		}
		if left == math.MaxInt {
			s.addIfNear(r, w, float64(row(len(w.phones))[width-1]/max(r.weight, w.weight)))
		}
	}
}

// addIfNear adds a target at a phonetic distance, unless the distance of sound and letters together is beyond the
// limit.
func (s *targetSearch) addIfNear(r wordRun, w *pronunciation, sound float64) {
	t := &s.all.list[w.target]
	limit := r.maxDistance * r.limitFactor(t.weight)
	if sound > r.soundLimitFactor()*limit {
		return
	}
	spelt := float64(wordDistance(r.letters, t.plain)) / float64(max(len(r.letters), len(t.plain)))
	s.addCorrection(r, t, min(sound, (1-spellingShare)*sound+spellingShare*spelt), limit)
}

// addCorrection adds a correction with a distance, unless that is beyond the limit.
func (s *targetSearch) addCorrection(r wordRun, t *target, score, limit float64) {
	n := r.to - r.from
	score += r.cost + wordCountCost*math.Abs(float64(n-len(t.words)))
	if score < limit && n <= 2*len(t.words)+1 {
		s.found = append(s.found, correction{r.from, r.to, t, score, float64(t.weight) * (limit - score + 0.02)})
	}
}

// unambiguous returns the best correction of a run; none if another is about as near, because either could be meant.
func unambiguous(found []correction) []correction {
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b correction) int { return cmp.Compare(a.distance, b.distance) })
	best := found[0]
	for _, f := range found[1:] {
		if f.plain != best.plain && best.distance > ambiguousFrom && f.distance < best.distance+ambiguityMargin {
			return nil
		}
	}
	return found[:1]
}

// limitFactor returns the part of a limit that applies to a target of a weight: less for a short target, and little
// if all words of the run are common.
func (r wordRun) limitFactor(weight float32) float64 {
	full := fullLimitWeight
	switch {
	case weight >= longTermWeight:
		return longTermLimitFactor
	case r.common:
		full = commonWordsFullWeight
	}
	return min(1, max(0, float64(weight)-1)/(full-1))
}

// soundLimitFactor returns the factor of the limit up to which the phonetic distance alone may be: the letters of one
// word may compensate for it.
func (r wordRun) soundLimitFactor() float64 {
	if r.to-r.from > 1 {
		return 1
	}
	return maxSoundLimitFactor
}

// distanceLimit returns the maximum distance of words from a term, by how common the words are.
func distanceLimit(words []token) float64 {
	strange, named, familiar := 0, 0, 0
	for _, t := range words {
		switch {
		case t.probability == 0:
			strange++
		case t.capitalized && t.probability < 2*commonWordProb:
			named++
		case t.probability >= commonWordProb:
			familiar++
		}
	}
	n := len(words)
	switch {
	case strange == n:
		return unknownWordsLimit
	case strange > 0 && strange+named == n:
		return (unknownWordsLimit + mixedLimit) / 2
	case strange > 0:
		return mixedLimit
	case named == n:
		return capitalizedLimit
	case n > 1:
		return commonWordsLimit
	case familiar > 0:
		return 0
	}
	return uncommonWordLimit
}

// searchNeighbours searches for the other words of a name of which one was found: they may be farther from the
// recognised words.
func (s *targetSearch) searchNeighbours(f correction) {
	for from := max(f.from-3, 0); from < f.from; from++ {
		if mayContinue(s.text[f.from-1]) {
			s.searchNeighbour(from, f.from, f, -1)
		}
	}
	for to := f.to + 1; to <= min(f.to+3, len(s.text)); to++ {
		if mayContinue(s.text[f.to-1]) {
			s.searchNeighbour(f.to, to, f, 1)
		}
	}
}

// searchNeighbour compares a run with the word of a name directly before (step -1) or after (step 1) the one that was
// found.
func (s *targetSearch) searchNeighbour(from, to int, f correction, step int) {
	r, ok := s.wordRun(from, to)
	if !ok || r.maxDistance <= 0 {
		return
	}
	r.maxDistance = r.maxDistance*neighbourLimitFactor + neighbourLimitBonus
	for i := range s.all.pronunciations {
		w := &s.all.pronunciations[i]
		if t := &s.all.list[w.target]; t.term == f.term && t.wordIndex == f.wordIndex+step {
			s.addIfNear(r, w, pronunciationDistance(w.phones, r.phones))
		}
	}
}

// bestCombination returns the non-overlapping corrections with the largest total gain.
func (s *targetSearch) bestCombination() []correction {
	slices.SortStableFunc(s.found, func(a, b correction) int { return a.to - b.to })
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
	var chosen []correction
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
