package redact

import "strings"

// cue is a phrase that announces a number. Phrases begin with a space where they must begin a word.
type cue struct {
	phrase string
	kind   Kind // none: a number that is kept
}

// none is the kind of numbers that are kept.
const none Kind = ""

// cuePhrases has the phrases by kind, in lower case. The last one before a number decides.
var cuePhrases = map[Kind][]string{
	Card: {" card ", " card number", " credit card", " debit card", " visa ", " mastercard", " amex", " american express",
		"kreditkart", "kartennummer", " karte ", " debitkarte", "carte bancaire", "numéro de carte", "tarjeta", "carta di credito",
		"creditcard"},
	Expiry: {" expiry", " expires", " expiration", " valid until", " valid thru", " valid through", " good through", " gültig bis",
		" ablaufdatum", " verfall", " läuft ab", " gültigkeit"},
	CVV: {" cvv", " cvc", " cv two", " security code", " card code", " verification value", " on the back", "sicherheitscode",
		"kartenprüfnummer", " prüfnummer", " prüfziffer", " auf der rückseite", "sicherheitsnummer", " sicherheits code"},
	Account: {" iban", " sort code", " routing number", " bank account", " account number", " checking account", "kontonummer",
		"bankleitzahl", " blz", " bankverbindung", " konto nummer", " bankkonto"},
	Health: {" nhs", " health insurance", " health card", " medicare", " medicaid", " member id", " insurance number", "versichertennummer",
		"krankenversicherung", "krankenkasse", "gesundheitskarte", " versicherungskarte", "versichertenkarte", " patient number"},
	Social: {" social security", " ssn", " national insurance", " ni number", " tax id", " taxpayer", " tax identification", " tax file",
		"sozialversicherung", "rentenversicherung", " steuer id", "steueridentifikation", " steuernummer", " ahv", " passport", "reisepass",
		"ausweis", " identity card", " driver's licen", " driving licen", "führerschein", " bsn", " pesel", " dni", " nir ",
		"sécurité sociale", "codice fiscale", " personnummer", "rijksregister", " identity number"},
	PIN: {" pin ", " pin code", " pin number", " pincode", "geheimzahl", " geheimnummer", " passcode", " tan ", " one time code",
		" one time password"},
	none: {" phone", " telephone", " mobile", " cell ", " call me back", " call back", " extension", " telefon", "rufnummer", " rückruf",
		" handy", " durchwahl", " order", " invoice", " ticket", " reference", " tracking", " case number", " contract", " customer number",
		" serial",
		"bestell", "auftrag", "rechnung", "referenz", "sendung", " vorgang", "vertrag", "kundennummer", "seriennummer", " zähler", " meter",
		" postcode", " post code", " zip", " plz", "postleitzahl", " date", " born", " birth", "geburt", " datum", " amount", " total",
		" betrag", " room", " zimmer", " pin board", " ending in", " ends in", " last four", " endet auf", " letzten vier", " flight",
		" flug", " booking",
		" buchung"},
}

// cues has all phrases.
var cues = func() (all []cue) {
	for k, phrases := range cuePhrases {
		for _, p := range phrases {
			all = append(all, cue{p, k})
		}
	}
	return all
}()

// lastCue returns the kind of the last cue in words, which are separated and enclosed by spaces; found is false if there is none.
func lastCue(words string) (kind Kind, end int, found bool) {
	longest := 0
	for _, c := range cues {
		at := strings.LastIndex(words, c.phrase)
		if at < 0 {
			continue
		}
		if e := at + len(strings.TrimRight(c.phrase, " ")); !found || e > end || e == end && len(c.phrase) > longest {
			kind, end, longest, found = c.kind, e, len(c.phrase), true
		}
	}
	return kind, end, found
}

// hasCue reports whether words contain a cue of a kind.
func hasCue(words string, k Kind) bool {
	for _, p := range cuePhrases[k] {
		if strings.Contains(words, p) {
			return true
		}
	}
	return false
}
