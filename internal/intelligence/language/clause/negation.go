package clause

import (
	"slices"
	"strings"

	"soniq/internal/platform/lazyregexp"
)

// negator is a word that negates the words behind it, up to an end.
type negator struct{ at, to int }

var (
	negatives = set("not no never cannot nobody none nothing neither nor without hardly barely scarcely rarely seldom nowhere")
	// scopeEnds end the scope of a negation.
	scopeEnds = set("and but because since until when after while although though so unless which who what whose where except as than if yet only instead")
	// reporting verbs leave their content inside the scope of a negation: "I do not think that".
	reporting = set("think believe say said mean sure feel know see told tell suppose guess")
	// pronouns follow a no that answers.
	pronouns = set("i we you he she it they there this that these those i'm i'll i've it's that's there's we're you're he's she's they're the a an my our your thanks thank please " +
		"do don't just only wait sorry not nobody nothing let but and can could will is are")
	opposites = lazyregexp.New(`^(?:not (?:only|just|merely|to mention|the first|the last|that long)|no (?:doubt|matter|later|sooner|earlier|more than|less than|wonder|worries)|nothing but|never mind|not (?:forget|hesitate)|don't (?:forget|hesitate|worry)|cannot wait|can't wait|can not wait|couldn't be (?:better|happier)|could not be (?:better|happier)|why not|nothing short)\b`)
	denials   = lazyregexp.New(`^(?:(?:is|are|was|were|does|do|has|have|will|would)(?: not|n't)|(?:isn't|aren't|wasn't|weren't))\b`)
)

// negative reports whether a word negates.
func negative(w string) bool { return negatives[w] || strings.HasSuffix(w, "n't") }

// findNegators finds the negations and their scopes.
func (c *Clause) findNegators() {
	for i := range c.words {
		if !c.negates(i) {
			continue
		}
		c.negators = append(c.negators, negator{i, c.scopeEnd(i)})
	}
	for i := range c.words {
		if c.privative(i) {
			c.negators = append(c.negators, negator{i, c.scopeEnd(i)})
		}
	}
}

// privative reports whether words without a negative form deny what follows: "free of", "far from", "instead of", "failed to".
func (c *Clause) privative(i int) bool {
	pair := c.at(i) + " " + c.at(i+1)
	return slices.Contains([]string{"free of", "free from", "far from", "instead of", "rather than", "failed to", "refused to", "refuse to",
		"unable to", "stopped being", "anything but", "rid of"}, pair)
}

// negates reports whether a word negates the words behind it.
func (c *Clause) negates(i int) bool {
	w := c.at(i)
	if !negative(w) || opposites.MatchString(strings.TrimSpace(w+" "+c.at(i+1)+" "+c.at(i+2))) {
		return false
	}
	if w == "no" {
		return c.determines(i)
	}
	return true
}

// determines reports whether a no is a determiner, as in "no hot water", and no answer or correction.
func (c *Clause) determines(i int) bool {
	next := c.at(i + 1)
	if next == "" || signs[next] {
		return false
	}
	first := i == 0 || signs[c.at(i-1)] || openings[c.at(i-1)]
	return !first || !pronouns[next]
}

// scopeEnd returns the word at which the scope of the negation at a word ends.
func (c *Clause) scopeEnd(at int) int {
	in := 0
	for k, p := range c.parts {
		if at >= p.from && at < p.to {
			in = k
		}
	}
	end := c.parts[in].to
	for k := in + 1; k < len(c.parts) && c.parts[k].list; k++ {
		end = c.parts[k].to
	}
	for i := at + 1; i < end; i++ {
		w := c.at(i)
		if w == "that" && i > at+1 && !reporting[c.at(i-1)] && finite[c.at(i+1)] || scopeEnds[w] && !(w == "if" && c.at(i-1) == "as") && i > at+1 {
			return i
		}
	}
	return end
}

// negated reports whether a word is inside the scope of a negation, or denied behind: "a fire is not what we have".
func (c Clause) negated(at int) bool {
	for _, n := range c.negators {
		if at > n.at && at < n.to {
			return true
		}
	}
	for i := at + 1; i < min(at+4, len(c.words)); i++ {
		if signs[c.at(i)] || scopeEnds[c.at(i)] {
			return false
		}
		if denials.MatchString(c.at(i) + " " + c.at(i+1)) {
			return !slices.ContainsFunc(c.parts, func(p part) bool { return i == p.from }) && c.deniesNoun(at, i)
		}
	}
	return false
}

// deniesNoun reports whether the words between a match and a denial are a noun alone, which has no subject of its own.
func (c Clause) deniesNoun(at, denial int) bool {
	for i := at; i < denial; i++ {
		if subjects[c.at(i)] || finite[c.at(i)] {
			return false
		}
	}
	return !subjects[c.at(denial-1)] && c.parts[0].from <= at && strings.Contains(" the a an any my this that ", " "+c.at(at-1)+" ")
}

// speech matches verbs by which somebody other than the speaker says what follows.
var speech = lazyregexp.New(`^(?:said|says|say|told|tells|tell|asked|asks|promised|promises|claimed|claims|thinks|heard|mentioned|wrote|announced|assured|warned|suggested|reportedly|apparently)$`)

// reported reports whether a word stands behind the verb of somebody else's speech, up to "but", a condition, or a part about the speaker.
func (c Clause) reported(at int) bool {
	for i := min(at, len(c.words)) - 1; i > 0; i-- {
		switch w := c.at(i); {
		case w == "but" || c.speakerReturns(i+1):
			return false
		case speech.MatchString(w):
			if first := c.speakerBefore(i); first != "i" && first != "we" {
				return true
			}
		}
	}
	return false
}

// speakerReturns reports whether a part about the speaker, or a condition, begins at a word.
func (c Clause) speakerReturns(at int) bool {
	w := c.at(at)
	if !firstPerson[w] && w != "if" && w != "unless" {
		return false
	}
	return slices.ContainsFunc(c.parts, func(p part) bool { return p.from == at && at > 0 && !speech.MatchString(c.at(at-1)) })
}

// speakerBefore returns the subject of a verb: the nearest pronoun or noun before it. It is empty at the beginning of a clause.
func (c Clause) speakerBefore(verb int) string {
	i := verb - 1
	for i >= 0 && slices.Contains([]string{"have", "had", "has", "just", "already", "also", "always", "never", "did", "would", "will", "to",
		"even", "only"}, c.at(i)) {
		i--
	}
	w := c.at(i)
	switch {
	case w == "i've" || w == "i'd":
		return "i"
	case w == "was" || w == "were" || w == "been":
		return "others"
	case i < 0 || w == "please" || w == "you" && i > 0 && slices.Contains([]string{"can", "could", "let", "will"}, c.at(i-1)):
		return "i" // an order: "tell me"
	}
	return w
}
