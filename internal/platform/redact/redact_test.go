package redact

import (
	"slices"
	"strings"
	"testing"
)

// talk is a call: a passage per line, "A:" or "C:" first.
func talk(lines ...string) (all []Passage) {
	for i, l := range lines {
		speaker, text, _ := strings.Cut(l, ": ")
		p := Passage{Speaker: speaker, Text: text, StartMS: i * 3000, EndMS: i*3000 + 2500}
		fields := strings.Fields(text)
		for j, f := range fields {
			step := 2500 / len(fields)
			p.Words = append(p.Words, Word{f, p.StartMS + j*step, p.StartMS + (j+1)*step})
		}
		all = append(all, p)
	}
	return all
}

func texts(all []Passage) (out []string) {
	for _, p := range all {
		out = append(out, p.Speaker+": "+p.Text)
	}
	return out
}

// all removes every kind.
var all = Policy{Kinds: Kinds}

// labelled are calls with what is to be left of them.
var labelled = []struct {
	name string
	said []string
	want []string
}{
	{"card in figures", []string{"C: My card number is 4111 1111 1111 1111, thank you."}, []string{"C: My card number is [card], thank you."}},
	{"card in one piece", []string{"C: It is 5555555555554444."}, []string{"C: It is [card]."}},
	{"card with hyphens", []string{"C: Use 4111-1111-1111-1111 please"}, []string{"C: Use [card] please"}},
	{"American Express", []string{"C: 3782 822463 10005"}, []string{"C: [card]"}},
	{"spoken card", []string{"C: four one one one one one one one one one one one one one one one"}, []string{"C: [card]"}},
	{"spoken in pairs", []string{"C: It's forty one eleven eleven eleven eleven eleven eleven eleven."}, []string{"C: It's [card]."}},
	{"double and triple", []string{"C: four triple one, double one double one, triple one one, and then triple one one."}, []string{"C: [card]."}},
	{"German card", []string{"C: Meine Kreditkartennummer ist vier eins eins eins eins eins eins eins eins eins eins eins eins eins eins eins."},
		[]string{"C: Meine Kreditkartennummer ist [card]."}},
	{"German compounds", []string{"C: Die Nummer lautet einundvierzig elf elf elf elf elf elf elf"}, []string{"C: Die Nummer lautet [card]"}},
	{"over pauses", []string{"A: Your card number, please.", "C: four one one one", "A: Yes?", "C: one one one one", "C: one one one one one", "A: Mhm.",
		"C: one one one."},
		[]string{"A: Your card number, please.", "C: [card]", "A: Yes?", "C: [card]", "C: [card]", "A: Mhm.", "C: [card]."}},
	{"read back", []string{"C: 4111 1111 1111 1111", "A: So that is four one one one", "C: Yes.", "A: one one one one one one one one one one one one. Right?"},
		[]string{"C: [card]", "A: So that is [card]", "C: Yes.", "A: [card]. Right?"}},
	{"misheard with a cue", []string{"A: What is your card number?", "C: 4111 1111 1111 1112"}, []string{"A: What is your card number?", "C: [card]"}},
	{"expiry and code", []string{"C: My card number is 4111 1111 1111 1111.", "A: And the expiry date?", "C: Twelve twenty seven.", "A: And the security code?",
		"C: one two three.", "A: One two three, thank you."},
		[]string{"C: My card number is [card].", "A: And the expiry date?", "C: [expiry].", "A: And the security code?", "C: [cvv].", "A: [cvv], thank you."}},
	{"all in one", []string{"C: 4111 1111 1111 1111 12 27 123"}, []string{"C: [card] [expiry] [cvv]"}},
	{"German code", []string{"A: Und die Prüfnummer auf der Rückseite?", "C: Sieben drei acht."}, []string{"A: Und die Prüfnummer auf der Rückseite?", "C: [cvv]."}},
	{"German expiry", []string{"C: Kreditkarte 5555 5555 5555 4444, gültig bis 03/28."}, []string{"C: Kreditkarte [card], gültig bis [expiry]."}},
	{"IBAN", []string{"C: Meine IBAN ist DE89 3704 0044 0532 0130 00."}, []string{"C: Meine IBAN ist [account]."}},
	{"spoken IBAN", []string{"C: D E acht neun drei sieben null vier null null vier vier", "A: Ja.", "C: null fünf drei zwei null eins drei null null null"},
		[]string{"C: [account]", "A: Ja.", "C: [account]"}},
	{"British IBAN", []string{"C: GB82 WEST 1234 5698 7654 32"}, []string{"C: [account]"}},
	{"sort code and account", []string{"C: My bank account number is 31926819 and the sort code is 60-16-13."},
		[]string{"C: My bank account number is [account] and the sort code is [account]."}},
	{"German account", []string{"C: Kontonummer 532013000, Bankleitzahl 37040044."}, []string{"C: Kontonummer [account], Bankleitzahl [account]."}},
	{"routing number", []string{"C: the routing number is 021000021"}, []string{"C: the routing number is [account]"}},
	{"German health insurance", []string{"C: Ich bin versichert, A 123456780."}, []string{"C: Ich bin versichert, [health]."}},
	{"NHS", []string{"A: Your NHS number?", "C: 943 476 5919"}, []string{"A: Your NHS number?", "C: [health]"}},
	{"German health with a cue", []string{"A: Wie lautet Ihre Versichertennummer?", "C: A eins zwei drei vier fünf sechs sieben acht neun"},
		[]string{"A: Wie lautet Ihre Versichertennummer?", "C: [health]"}},
	{"SSN", []string{"C: My social security number is 219 09 9999."}, []string{"C: My social security number is [social]."}},
	{"SSN by its form", []string{"C: It's 219-09-9999."}, []string{"C: It's [social]."}},
	{"German tax number", []string{"C: Meine Steuer-ID ist 86 095 742 719."}, []string{"C: Meine Steuer-ID ist [social]."}},
	{"German pension insurance", []string{"C: 65 170839 J 003"}, []string{"C: [social]"}},
	{"British NI number", []string{"C: It is AB 12 34 56 C."}, []string{"C: It is [social]."}},
	{"Swiss AHV", []string{"C: 756.9217.0769.85"}, []string{"C: [social]"}},
	{"French NIR", []string{"C: 2 69 05 49 588 157 80"}, []string{"C: [social]"}},
	{"Spanish DNI", []string{"C: 12345678Z"}, []string{"C: [social]"}},
	{"Italian code", []string{"C: RSSMRA85T10A562S"}, []string{"C: [social]"}},
	{"passport", []string{"C: My passport number is C01X00T47."}, []string{"C: My passport number is [social]."}},
	{"PIN", []string{"A: Please tell me your PIN.", "C: It's four seven one one."}, []string{"A: Please tell me your PIN.", "C: It's [pin]."}},
	{"German PIN", []string{"C: Die Geheimzahl ist 4711."}, []string{"C: Die Geheimzahl ist [pin]."}},
	{"corrected", []string{"C: My card number is 4111 1111, sorry, 4111 1111 1111 1111."}, []string{"C: My card number is [card], sorry, [card]."}},
	{"corrected over passages", []string{"A: Your card number?", "C: 4111 1112", "A: Yes.", "C: No, wait, 1111 1111 1111"},
		[]string{"A: Your card number?", "C: [card]", "A: Yes.", "C: No, wait, [card]"}},
	{"spelled IBAN", []string{"C: D wie Dora E wie Emil 89 3704 0044 0532 0130 00"}, []string{"C: [account]"}},
	{"ICAO", []string{"C: It's golf bravo 82 whiskey echo sierra tango 1234 5698 7654 32"}, []string{"C: It's [account]"}},
	{"several", []string{"C: I have two cards, 4111 1111 1111 1111 and 5555 5555 5555 4444."}, []string{"C: I have two cards, [card] and [card]."}},
}

// kept are texts in which nothing is removed.
var kept = []string{
	"C: Call me on 0170 1234567, or +49 30 901820.", "C: my number is oh one seven oh one two three four five six seven",
	"C: Meine Telefonnummer ist null eins sieben null eins zwei drei vier fünf sechs sieben.", "C: I'll be there on 12.05.2026 at 15:30.",
	"C: Am zwölften Mai um halb vier.", "C: My order number is 4711 0815 1234 5678.", "C: Die Bestellnummer ist 4000 1234 5678 9010 11.",
	"C: Order 12345678 has not arrived.", "C: Sendungsnummer 00340434161094042557", "C: tracking number 1Z 999 AA1 0123 4567 84",
	"C: It costs 1,234.50 euros.", "C: I was born on 1 2 1980.", "C: two or three people, four at most", "C: My customer number is 123456789.",
	"C: Postcode 10117 Berlin", "C: card ending in 1234", "C: My account number with you is 9876543.", "C: Ticket 123-45-678", "C: I paid 400 dollars by card.",
	"C: Flight LH 400 on 12 27", "C: The year 2026, 365 days, 24 hours.", "C: My card expired in 2024.", "C: I need 10 cards by 12 27.",
	"C: Rechnung 2026-11-0815 über 149 Euro", "C: Room 123, extension 456", "C: I am 43 and my sister is 41.", "C: Kundennummer 4711", "C: 192.168.100.200",
	"C: call reference 1234567890", "C: Order 4711, no, 4712, sorry.",
	"C: Anton and Berta called Emil at 5, again.", "C: It is 10, no, 12 euros.", "C: one two three testing", "C: Zählerstand 12345678, Zählernummer 1EMH0012345678",
}

func TestApply_LabelledCalls(t *testing.T) {
	t.Parallel()
	for _, c := range labelled {
		got, removed := all.Apply(talk(c.said...))
		if !slices.Equal(texts(got), c.want) {
			t.Errorf("%s: %q, want %q", c.name, texts(got), c.want)
		}
		if len(removed) == 0 {
			t.Errorf("%s: no removals", c.name)
		}
	}
}

func TestApply_OtherNumbersStay(t *testing.T) {
	t.Parallel()
	for _, text := range kept {
		if got, _ := all.Apply(talk(text)); got[0].Text != text[3:] {
			t.Errorf("%q became %q", text, got[0].Text)
		}
	}
}

func TestApply_OnlyChosenKinds(t *testing.T) {
	t.Parallel()
	const text = "card 4111 1111 1111 1111, IBAN DE89 3704 0044 0532 0130 00"
	for kinds, want := range map[*[]Kind]string{
		{}:        text,
		{Card}:    "card [card], IBAN DE89 3704 0044 0532 0130 00",
		{Account}: "card 4111 1111 1111 1111, IBAN [account]",
	} {
		if got := (Policy{Kinds: *kinds}).Text(text); got != want {
			t.Errorf("%v: %q", *kinds, got)
		}
	}
}

// The lines of a text are those of its speakers.
func TestText_Speakers(t *testing.T) {
	t.Parallel()
	const text = "Caller: My card is 4111 1111\nAssistant: Go on.\nCaller: 1111 1111, and call 0170 1234567."
	if got := all.Text(text); got != "Caller: My card is [card]\nAssistant: Go on.\nCaller: [card], and call 0170 1234567." {
		t.Errorf("%q", got)
	}
}

// A text without its neighbours has no half of a number.
func TestIsolated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"My card is four one one one":  "My card is [number]",
		"1111 1111, that is all":       "[number], that is all",
		"I have 4711 of them in stock": "I have 4711 of them in stock",
		"it is 4111 1111 1111 1111":    "it is [card]",
		"one two three":                "one two three",
		"":                             "",
	} {
		if got := all.Isolated(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
