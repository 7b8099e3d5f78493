package itn

import "strings"

import (
	"soniq/internal/intelligence/engine"
)

// topLevelDomains are spoken top-level domains.
var topLevelDomains = engine.WordSet("com net org info biz edu gov io co uk de fr nl ie eu us ca au nz ch at es it be dk se no fi pl")

// addressSigns maps spoken signs within addresses.
var addressSigns = map[string]string{"dot": ".", "underscore": "_", "dash": "-", "hyphen": "-"}

// notMailboxes are words before "at" that are no mailbox: "look at example dot com".
var notMailboxes = engine.WordSet("us me him her them it is are was be look looking find found here there that this website site page online visit shop log sign the a and or")

// atom reads a part of an address: a word, or letters and digits spoken one by one.
func atom(words []string) (text string, used int) {
	for used < len(words) {
		x := strings.ToLower(letterOf(words[used]))
		if used == 0 && (words[0] == "a" || words[0] == "i") {
			break
		}
		if x == "" {
			x = SpokenDigits[words[used]]
		}
		if x == "" {
			break
		}
		text, used = text+x, used+1
	}
	if used == 0 && len(words) > 0 && addressSigns[words[0]] == "" && words[0] != "at" {
		return strings.ToLower(words[0]), 1
	}
	return text, used
}

// atoms reads parts with signs between them.
func atoms(words []string) (text string, used int) {
	text, used = atom(words)
	for used > 0 && used+1 < len(words) && addressSigns[words[used]] != "" {
		next, n := atom(words[used+1:])
		if n == 0 {
			break
		}
		text, used = text+addressSigns[words[used]]+next, used+1+n
	}
	return text, used
}

// site reads a domain name. Up to may words that were recognised separately are joined.
func site(words []string, may int) (text string, used int) {
	for n := 0; n < may && n < len(words); n++ {
		rest, k := atoms(words[n:])
		if domain := rest[strings.LastIndexByte(rest, '.')+1:]; k > 1 && strings.Contains(rest, ".") && topLevelDomains[domain] {
			return strings.ToLower(strings.Join(words[:n], "")) + rest, n + k
		}
	}
	return "", 0
}

// formatEmail formats an e-mail address.
func formatEmail(words []string, _ string) (string, int) {
	local, n := atoms(words)
	if n == 0 || n+1 >= len(words) || words[n] != "at" || notMailboxes[local] {
		return "", 0
	}
	domain, k := site(words[n+1:], 3)
	if k == 0 {
		return "", 0
	}
	return local + "@" + domain, n + 1 + k
}

// formatSite formats a domain name.
func formatSite(words []string, _ string) (string, int) { return site(words, 1) }
