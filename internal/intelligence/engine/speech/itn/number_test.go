package itn

import (
	"strings"
	"testing"
)

func TestFormatSentence_NumbersDatesAddresses(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		// digits and codes
		"my number is four four seven nine double oh one":                 "My number is 4479001.",
		"call plus four four two oh seven nine four six oh one two three": "Call +442079460123.",
		"the references eighty four four seven":                           "The references 8447.",                 // as recognised
		"our site is w w w dot for example dot com":                       "Our site is WWW dot for example.com.", // as recognised
		"reference a. b. four four seven":                                 "Reference AB447.",
		"the u. k. office":                                                "The UK office.",
		"one of the two":                                                  "One of the two.",
		"it has happened three times":                                     "It has happened three times.",
		"double the price":                                                "Double the price.",
		// numbers
		"about twenty five people":                           "About 25 people.",
		"a hundred and five boxes":                           "105 boxes.",
		"two thousand and twelve parts":                      "2012 parts.",
		"twelve thousand three hundred and forty five units": "12,345 units.",
		"they have two million customers":                    "They have 2 million customers.",
		"that was the twenty third call":                     "That was the 23rd call.",
		"the second time i need a second":                    "The second time I need a second.",
		// money and shares
		"the appointment is on this heard of me at three thirty pm":             "The appointment is on this heard of me at 3:30 p.m.", // as recognised
		"we delivered one hundred and twenty boxes on tuesday the twenty first": "We delivered 120 boxes on Tuesday the 21st.",
		"please write to him and a dog sniff at example dot com":                "Please write to him and a dog sniff@example.com.", // as recognised
		"you get a discount of fifteen percent until the end of october":        "You get a discount of 15% until the end of October.",
		"it costs forty nine dollars and ninety nine cents":                     "It costs $49.99.",
		"i paid one hundred and twenty pounds fifty pence":                      "I paid £120.50.",
		"fifty euros is too much":                                               "50 euros is too much.",
		"a discount of five percent or twenty per cent":                         "A discount of 5% or 20%.",
		// dates
		"on the third of may":                              "On the 3rd of May.",
		"by october twenty first twenty twenty six please": "By October 21st 2026 please.",
		"on may the first":                                 "On May the 1st.",
		"you may first call us":                            "You may first call us.",
		"in march we march on":                             "In march we march on.",
		"since nineteen eighty four":                       "Since 1984.",
		"monday or tuesday in december":                    "Monday or Tuesday in December.",
		"the thirtieth of november two thousand and five":  "The 30th of November 2005.",
		// times
		"at three thirty p.m. or ten am":            "At 3:30 p.m. or 10 a.m.",
		"we open at nine oh five":                   "We open at 9:05.",
		"between eight fifteen and nine forty five": "Between 8:15 and 9:45.",
		"at three o'clock":                          "At three o'clock.",
		"after two twenty dollars":                  "After two 20 dollars.",
		// addresses
		"write to anna dot smith at example dot com":            "Write to anna.smith@example.com.",
		"it is j. o. four two at blue harbour dot co dot uk":    "It is jo42@blueharbour.co.uk.",
		"look at example dot com slash help":                    "Look at example.com slash help.",
		"john underscore doe at mail dash house dot org thanks": "john_doe@mail-house.org thanks.",
		"i am at home": "I am at home.",
	} {
		if got := Sentence(strings.Fields(said)); got != want {
			t.Errorf("%q is written as %q, want %q", said, got, want)
		}
	}
}

func FuzzFormatSentence(f *testing.F) {
	f.Add("a hundred and twenty first of may at two oh oh a. dot com")
	f.Fuzz(func(t *testing.T, said string) {
		if words := strings.Fields(said); len(words) > 0 && Sentence(words) == "" {
			t.Errorf("nothing is left of %q", said)
		}
	})
}
