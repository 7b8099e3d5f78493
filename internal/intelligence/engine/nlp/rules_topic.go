package nlp

import (
	"sort"
	"strings"

	"soniq/internal/intelligence/engine"
)

// taxonomy lists topics of calls to businesses, each with typical words. A small number of general labels lets topics
// be counted over calls.
var taxonomy = []struct{ label, words string }{
	{"billing", "bill invoice charge payment paid fee overcharged statement credit tariff"},
	{"refund", "refund reimburse money back return reverse"},
	{"delivery", "package parcel delivery courier shipment tracking depot arrive ship"},
	{"order", "order purchase item stock warehouse product quantity"},
	{"return or exchange", "return exchange label wrong size defective replacement warranty"},
	{"internet connection", "internet wifi router modem broadband network outage offline slow"},
	{"telephone service", "phone line sip extension voicemail codec choppy dial desk"},
	{"software problem", "software app crash update bug login website error export file"},
	{"hardware problem", "laptop printer screen battery device computer keyboard repair broken"},
	{"account access", "password login account locked reset username authentication code"},
	{"fraud and security", "fraud hacked phishing stolen suspicious unauthorized scam block"},
	{"bank card", "card bank debit credit purchase pin atm wallet"},
	{"loan and mortgage", "loan mortgage interest instalment lender rate"},
	{"insurance claim", "insurance claim accident adjuster damage policy deductible coverage"},
	{"appointment", "appointment schedule reschedule slot booking calendar visit monday afternoon"},
	{"medical", "doctor pain nurse prescription pharmacy medicine clinic symptom patient tooth"},
	{"flight", "flight airline airport seat luggage passenger connection boarding"},
	{"hotel", "hotel room guest reservation checkout night reception"},
	{"restaurant", "restaurant table dinner meal menu food waiter"},
	{"car repair", "car brakes mechanic engine garage tire vehicle tow"},
	{"rental", "rental rent tenant landlord apartment lease deposit"},
	{"household repair", "plumber leak pipe heating boiler water electrician flood"},
	{"electricity and gas", "electricity gas meter power reading energy outage"},
	{"cancellation", "cancel cancellation terminate subscription contract quit end"},
	{"contract and plan", "contract plan upgrade subscription renewal price package"},
	{"complaint", "complaint complain manager supervisor unacceptable rude apology"},
	{"employment", "job interview salary position application hire resume"},
	{"tax", "tax return filing deduction extension accountant"},
	{"school", "school teacher student class course exam enrol child"},
	{"property", "house property viewing buyer estate inspection mortgage"},
	{"legal", "lawyer court legal contract clause agreement sue"},
	{"event", "event ticket concert wedding party catering venue"},
	{"sales enquiry", "quote price offer demo product discount buy interested"},
	{"technical support", "support technician install setup connect cable configure settings"},
}

// topics returns the topics of a call, the most likely first: labels of the taxonomy that fit clearly, at most three.
// Clauses that were taken back, or that say what the call is not about, do not count.
func (r *RuleSummarizer) topics(lines []line) []string {
	var b strings.Builder
	for _, c := range lines {
		if !c.Aside() && !c.At(0).Corrected {
			b.WriteString(c.Text + "\n")
		}
	}
	said := map[uint32]int{}
	for _, t := range r.lexicon.Terms(b.String()) {
		said[uint32(t)]++
	}
	call := r.lexicon.embed(b.String())
	type scored struct {
		label string
		score float32
	}
	var all []scored
	for _, t := range taxonomy {
		s := scored{t.label, engine.Dot(call, r.lexicon.embed(t.label+" "+t.words))}
		for _, w := range r.lexicon.Terms(t.label + " " + t.words) {
			s.score += 0.06 * float32(min(said[uint32(w)], 3))
		}
		all = append(all, s)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].score > all[j].score })
	out := []string{}
	for _, s := range all[:3] {
		if s.score > 0.55 && s.score > 0.75*all[0].score {
			out = append(out, s.label)
		}
	}
	return out
}
