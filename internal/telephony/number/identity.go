package number

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// spellingRule describes two spellings in E.164 of one telephone. Both are in use, because networks, address books and
// carriers write numbers as they were before a change of a numbering plan. The rest is the part after the prefixes.
type spellingRule struct {
	current string // prefix of the spelling of today, which is the canonical one
	former  string // prefix of the other spelling
	first   string // digits with which the rest begins; "" for any
	digits  int    // length of the rest
}

// spellingRules lists the pairs of spellings. A pair stands here only if the numbering plan assigns both to the same telephone,
// so that nobody else can have one of them.
var spellingRules = []spellingRule{
	// Mexico: since 2019-08-03 mobile numbers have no 1 after the country code (IFT, Plan Técnico Fundamental de Numeración, DOF
	// 2018-05-11).
	{current: "+52", former: "+521", first: "23456789", digits: 10},
	// Argentina: a 9 after the country code marks a call to a mobile telephone; the number is unique without it (ENACOM, Plan Fundamental
	// de Numeración Nacional, resolution SC 46/97).
	{current: "+549", former: "+54", first: "123", digits: 10},
	// Colombia: landlines were prefixed with 60 on 2021-09-01 (CRC, Resolución 5826 de 2019).
	{current: "+5760", former: "+57", first: "12345678", digits: 8},
	// Benin: every number was prefixed with 01 on 2024-11-30 (ARCEP Bénin; ITU Operational Bulletin 1300).
	{current: "+22901", former: "+229", first: "2456789", digits: 8},
}

// Brazil: mobile numbers were prefixed with 9 behind their area code from 2012 to 2016 (Anatel, Resolução 553/2010). The
// numbers of before began with 6 to 9. A longer number whose second digit is 2 to 5 has no shorter spelling, because that is a
// landline.
const (
	brazil          = "+55"
	brazilArea      = 2 // digits of an area code
	brazilOld       = 8 // digits of a mobile number of before
	brazilOldMobile = "6789"
)

// Spellings returns the spellings in E.164 under which one telephone is known: the given one, and another one. Both are the
// same if the number has no other spelling. It costs no allocation for most numbers.
func Spellings(e164 string) (given, other string) {
	if o := otherSpelling(e164); o != "" {
		return e164, o
	}
	return e164, e164
}

// Identity returns the canonical spelling of a number in E.164. Two numbers are one telephone if they have the same. Other
// texts are returned unchanged. Numbers are stored and dialled as they came; only comparisons use the identity.
func Identity(e164 string) string {
	o := otherSpelling(e164)
	if o == "" || isCurrent(e164) {
		return e164
	}
	return o
}

// AllSpellings returns the spellings of several numbers, without duplicates of the same number.
func AllSpellings(numbers []string) []string {
	all := make([]string, 0, len(numbers))
	for _, n := range numbers {
		all = append(all, n)
		if o := otherSpelling(n); o != "" {
			all = append(all, o)
		}
	}
	return all
}

// otherSpelling returns the other spelling of a number; "" if it has none.
func otherSpelling(e164 string) string {
	for _, r := range spellingRules {
		if rest, ok := r.rest(e164, r.current); ok {
			return r.former + rest
		}
		if rest, ok := r.rest(e164, r.former); ok {
			return r.current + rest
		}
	}
	return brazilianSpelling(e164)
}

// isCurrent reports whether a number with two spellings is written as the numbering plan of today has it.
func isCurrent(e164 string) bool {
	for _, r := range spellingRules {
		if _, ok := r.rest(e164, r.current); ok {
			return true
		}
	}
	return strings.HasPrefix(e164, brazil) && len(e164) == len(brazil)+brazilArea+1+brazilOld
}

// rest returns what follows a prefix of the rule, if the number fits.
func (r spellingRule) rest(e164, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(e164, prefix)
	ok = ok && len(rest) == r.digits && (r.first == "" || strings.IndexByte(r.first, rest[0]) >= 0)
	return rest, ok
}

// brazilianSpelling returns a Brazilian mobile number with or without its ninth digit; "" for other numbers.
func brazilianSpelling(e164 string) string {
	rest, ok := strings.CutPrefix(e164, brazil)
	if !ok || len(rest) < brazilArea+brazilOld {
		return ""
	}
	area, number := rest[:brazilArea], rest[brazilArea:]
	old, ninth := strings.CutPrefix(number, "9")
	switch {
	case len(number) == brazilOld && strings.IndexByte(brazilOldMobile, number[0]) >= 0:
		return brazil + area + "9" + number
	case ninth && len(old) == brazilOld && strings.IndexByte(brazilOldMobile, old[0]) >= 0:
		return brazil + area + old
	}
	return ""
}

// formerTrunkPrefixes are prefixes of national numbers that were dialled in a country before a change of its numbering plan. The
// phone library keeps them as a part of the number. Mexico: 01, 044 and 045 until 2019-08-03 (IFT, DOF 2018-05-11).
var formerTrunkPrefixes = []struct {
	prefix, country string
	digits          int // length of the number behind the prefix
}{{"+52044", "+52", 10}, {"+52045", "+52", 10}, {"+5201", "+52", 10}}

// FormerSpelling returns in E.164 a number whose length is impossible today, because it is written as before a change of the
// numbering plan. The former spelling itself is returned, because it may be the one in which the number is known elsewhere. ok is
// false for other numbers.
func FormerSpelling(n *phonenumbers.PhoneNumber) (e164 string, ok bool) {
	e164 = phonenumbers.Format(n, phonenumbers.E164)
	written := e164
	for _, f := range formerTrunkPrefixes {
		if rest, has := strings.CutPrefix(e164, f.prefix); has && len(rest) == f.digits {
			e164 = f.country + rest
		}
	}
	if Identity(e164) == written {
		return "", false
	}
	p, err := phonenumbers.Parse(Identity(e164), "")
	if err != nil || !phonenumbers.IsPossibleNumber(p) {
		return "", false
	}
	return e164, true
}
