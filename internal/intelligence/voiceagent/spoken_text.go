package voiceagent

import (
	"net/url"
	"strings"

	"soniq/internal/platform/lazyregexp"
)

// Markup in the replies of models that are asked for text. A caller hears the words, not the marks and not the addresses behind links.
var (
	markedLink     = lazyregexp.New(`!?\[([^\]]*)\]\(\s*<?([^)\s>]*)[^)]*\)`)
	bareAddress    = lazyregexp.New(`https?://[^\s<>()\[\]"]+`)
	lineMark       = lazyregexp.New(`^(?:\s*>)*\s*(?:#{1,6}\s+|[-*+•]\s+)?`)
	emphasis       = lazyregexp.New(`\*{2,}|_{2,}|~{2,}|(^|[\s("'])[*_]+([^\s*_])|([^\s*_])[*_]+($|[\s.,;:!?)"'])`)
	multiplication = lazyregexp.New(`(\d)\s*\*\s*(\d)`)
)

// spokenText returns a part of a reply as it is spoken: without markup, a link as its label, and another address as its host and path.
func spokenText(text string) string {
	text = markedLink.ReplaceAllStringFunc(text, func(link string) string {
		m := markedLink.FindStringSubmatch(link)
		if label := strings.TrimSpace(m[1]); label != "" {
			return label
		}
		return spokenAddress(m[2])
	})
	text = bareAddress.ReplaceAllStringFunc(text, spokenAddress)
	text = lineMark.ReplaceAllString(text, "")
	text = multiplication.ReplaceAllString(text, "$1 × $2")
	for range 2 { // marks of one word follow those of the word before
		text = emphasis.ReplaceAllString(text, "$1$2$3$4")
	}
	return strings.Join(strings.Fields(strings.NewReplacer("`", "", "_", " ", "[", "", "]", "", "|", " ").Replace(text)), " ")
}

// spokenAddress returns the host and the path of an address, and the punctuation behind it.
func spokenAddress(address string) string {
	plain := strings.TrimRight(address, ".,;:!?*_")
	u, err := url.Parse(plain)
	if err != nil || u.Host == "" {
		return address
	}
	return strings.TrimPrefix(u.Host, "www.") + strings.TrimRight(u.Path, "/") + strings.Trim(address[len(plain):], "*_")
}

// inLink reports whether a text ends inside a link: in its label, or in the address behind that.
func inLink(text string) bool {
	label := strings.LastIndexByte(text, '[')
	return label >= 0 && (strings.IndexByte(text[label:], ']') < 0 ||
		strings.Contains(text[label:], "](") && strings.IndexByte(text[label:], ')') < 0)
}
