package redact

import (
	"slices"
	"strings"
)

// shape is a number of a fixed form with check digits.
type shape struct {
	kind  Kind
	form  string // 9: digit, A: letter, X: both
	check func(string) bool
	alone bool // found without a cue
}

// shapes are the numbers with check digits beside cards and IBANs.
var shapes = []shape{
	{Health, "A999999999", isKVNR, true},                // DE: Krankenversichertennummer
	{Health, "9999999999", isNHS, false},                // GB: NHS number
	{Health, "9AX9AX9AA99", isAny, true},                // US: Medicare beneficiary identifier
	{Social, "99999999A999", isVSNR, true},              // DE: Rentenversicherungsnummer
	{Social, "99999999999", isSteuerID, false},          // DE: Steueridentifikationsnummer
	{Social, "9999999999", isSVNR, false},               // AT: Sozialversicherungsnummer
	{Social, "9999999999999", isAHV, true},              // CH: AHV-Nummer
	{Social, "999999999999999", isNIR, true},            // FR: numéro de sécurité sociale
	{Social, "999999999", isSSN, false},                 // US: social security number
	{Social, "AA999999A", isNINO, true},                 // GB: national insurance number
	{Social, "999999999", isBSN, false},                 // NL: burgerservicenummer
	{Social, "99999999999", isPESEL, false},             // PL
	{Social, "99999999999", isRijksregister, false},     // BE
	{Social, "99999999A", isDNI, true},                  // ES
	{Social, "AAAAAA99A99A999A", isCodiceFiscale, true}, // IT
	{Account, "999999999", isRouting, false},            // US: routing number
}

func isAny(string) bool { return true }

// isNINO checks the prefix and suffix of a British national insurance number.
func isNINO(s string) bool {
	return !strings.ContainsAny(s[:1], "DFIQUV") && !strings.ContainsAny(s[1:2], "DFIQUVO") && s[8] >= 'A' && s[8] <= 'D' &&
		!slices.Contains([]string{"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}, s[:2])
}

// fits reports whether a text has the form of the shape and right check digits.
func (s shape) fits(text string) bool {
	if len(text) != len(s.form) {
		return false
	}
	for i := range len(text) {
		digit := text[i] >= '0' && text[i] <= '9'
		if s.form[i] == '9' && !digit || s.form[i] == 'A' && digit {
			return false
		}
	}
	return s.check(text)
}

// announced has the sizes of numbers that are found by a cue alone, because check digits may be misheard or missing.
var announced = []struct {
	kind        Kind
	least, most int
}{
	{Card, 12, 19}, {CVV, 3, 4}, {PIN, 4, 8}, {Account, 5, 34}, {Health, 8, 16}, {Social, 8, 16},
}

// search finds the numbers of all runs.
func (r *reading) search() {
	for i := range r.runs {
		r.eachWindow(&r.runs[i], r.checked)
	}
	for i := range r.runs {
		r.eachWindow(&r.runs[i], r.cued)
	}
	for _, f := range slices.Clone(r.found) {
		if f.kind == Card {
			r.afterCard(f)
		}
	}
	r.takenBack()
	r.repeated()
}

// Lengths of the shortest and the longest number.
const (
	minNumber = 3
	maxNumber = 34
)

// eachWindow calls found for the windows of a run, the longest of each start first, until it returns true for that start.
func (r *reading) eachWindow(x *run, found func(window) bool) {
	for from := 0; from < len(x.tokens); from++ {
		for to := min(len(x.tokens), from+maxNumber); to > from; to-- {
			w := window{x, from, to}
			if n := w.size(); n > maxNumber || n < minNumber {
				continue
			}
			if found(w) {
				from = to - 1
				break
			}
		}
	}
}

// checked finds a number with right check digits.
func (r *reading) checked(w window) bool {
	text := w.text()
	digits := w.isDigits()
	switch {
	case digits && isCardNumber(text) && r.isCardHere(w):
		r.add(Card, w)
		return true
	case !digits && isIBAN(text):
		r.add(Account, w)
		return true
	}
	if !r.begins(w) && digits || digits && !r.ends(w) {
		return false
	}
	for _, s := range shapes {
		if s.fits(text) && (s.alone || r.isAnnounced(w, s.kind) || r.isGroupedSSN(w)) {
			r.add(s.kind, w)
			return true
		}
	}
	return false
}

// isCardHere reports whether a window with the form of a card's number may be one. Long numbers of other kinds have such parts by chance.
func (r *reading) isCardHere(w window) bool {
	k, known := r.cue(w)
	if known && k != none {
		return true
	}
	if to, ok := w.end(w.to, 4); ok && isMonthYear(w.chars[w.start[w.to]:w.start[to]]) {
		return r.begins(w)
	}
	return r.ends(w) && (r.begins(w) || !known)
}

// isGroupedSSN reports whether the window is written as a US social security number is: 123-45-6789.
func (r *reading) isGroupedSSN(w window) bool {
	if w.to-w.from != 3 || w.size() != 9 {
		return false
	}
	m := w.members()
	a, b, c := r.tokens[m[0]], r.tokens[m[1]], r.tokens[m[2]]
	return a.passage == c.passage && r.passages[a.passage].Text[a.from:c.to] == a.original+"-"+b.original+"-"+c.original &&
		len(a.original) == 3 && len(b.original) == 2 && isSSN(w.text())
}

// cued finds a number that words announce.
func (r *reading) cued(w window) bool {
	if !r.begins(w) || !r.ends(w) {
		return false
	}
	for _, a := range announced {
		if n := w.size(); n < a.least || n > a.most || !r.isAnnounced(w, a.kind) ||
			a.kind != Account && a.kind != Health && a.kind != Social && !w.isDigits() {
			continue
		}
		if !r.suits(a.kind, w) {
			continue
		}
		r.add(a.kind, w)
		return true
	}
	if r.isAnnounced(w, Expiry) && isMonthYear(w.text()) && hasCue(r.before(w.tokens[w.from], 4*contextWords), Card) {
		r.add(Expiry, w)
		return true
	}
	return false
}

// suits reports whether a number found by a cue alone has a form of its kind.
func (r *reading) suits(k Kind, w window) bool {
	digits := digitsIn(w.text())
	words := r.before(w.tokens[w.from], 3*contextWords)
	switch k {
	case Account:
		_, end, _ := lastCue(words)
		generic := strings.HasSuffix(words[:end], " account number")
		bank := hasCue(strings.ReplaceAll(words, " account number", ""), Account) || strings.Contains(words, " bank") ||
			strings.Contains(words, " debit")
		return digits >= 5 && (!generic || bank)
	case Health, Social:
		return digits >= 6
	}
	return true
}

// isMonthYear reports whether digits are a month and a year of two or four digits.
func isMonthYear(d string) bool {
	if len(d) == 3 || len(d) == 5 {
		d = "0" + d
	}
	return (len(d) == 4 || len(d) == 6 && strings.HasPrefix(d[2:], "20")) && strings.Trim(d, "0123456789") == "" && d[:2] >= "01" &&
		d[:2] <= "12"
}

// cvvSize returns the length of the security code of a card.
func cvvSize(card string) int {
	if strings.HasPrefix(card, "34") || strings.HasPrefix(card, "37") {
		return 4
	}
	return 3
}

// afterCard finds the expiry date and the security code that are read out right after the number of a card.
func (r *reading) afterCard(card finding) {
	last := card.tokens[len(card.tokens)-1]
	for i := range r.runs {
		x := &r.runs[i]
		from := slices.IndexFunc(x.tokens, func(t int) bool { return t > last })
		if from < 0 || r.passages[r.tokens[x.tokens[from]].passage].Speaker != r.passages[r.tokens[last].passage].Speaker {
			continue
		}
		if from > 0 && x.tokens[from-1] == last {
			r.restOfRun(card, x, from)
		}
	}
}

// restOfRun finds the expiry date and the security code in the rest of the run of a card.
func (r *reading) restOfRun(card finding, x *run, from int) {
	if to, ok := x.end(from, 4); ok && isMonthYear(x.chars[x.start[from]:x.start[to]]) && cvvSize(card.chars) == 3 {
		r.add(Expiry, window{x, from, to})
		from = to
	}
	if to, ok := x.end(from, cvvSize(card.chars)); ok && r.ends(window{x, from, to}) && (window{x, from, to}).isDigits() {
		r.add(CVV, window{x, from, to})
	}
}

// end returns the token before which a number of a size that begins at a token ends.
func (x *run) end(from, size int) (to int, ok bool) {
	to = slices.Index(x.start, x.start[min(from, len(x.start)-1)]+size)
	return to, to > from
}

// takenBack finds the digits of a card's number that were said again, in the same run.
func (r *reading) takenBack() {
	for i := range r.runs {
		x := &r.runs[i]
		if !x.redone {
			continue
		}
		first := slices.IndexFunc(x.tokens, func(t int) bool { return r.taken[t] })
		card := first >= 0 && slices.ContainsFunc(r.found,
			func(f finding) bool { return f.kind == Card && slices.Contains(f.tokens, x.tokens[first]) })
		all := window{x, 0, len(x.tokens)}
		if k, _ := r.cue(all); !card && (k != Card || all.size() < announced[0].least || !all.isDigits()) {
			continue
		}
		for from := 0; from < len(x.tokens); from++ { // the parts that were not found, by passage
			to := from
			for to < len(x.tokens) && !r.taken[x.tokens[to]] && r.tokens[x.tokens[to]].passage == r.tokens[x.tokens[from]].passage {
				to++
			}
			if to > from {
				r.add(Card, window{x, from, to})
				from = to - 1
			}
		}
	}
}

// repeated finds numbers that were found already, where they are said again. Short ones are found within a few passages.
func (r *reading) repeated() {
	const near = 4
	done := map[string]bool{}
	for _, f := range slices.Clone(r.found) {
		if long := len(f.chars) >= 8; len(f.chars) < minNumber || long && done[f.chars] {
			continue
		}
		done[f.chars] = true
		begin := r.tokens[f.tokens[0]].passage
		for i := range r.runs {
			r.eachWindow(&r.runs[i], func(w window) bool {
				distance := r.tokens[w.tokens[w.from]].passage - begin
				if w.text() != f.chars || len(f.chars) < 8 && (distance < 0 || distance > near) || !r.begins(w) && len(f.chars) < 8 {
					return false
				}
				r.add(f.kind, w)
				return true
			})
		}
	}
}
