package contact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Headings of the exports of address books, telephone systems and CRM systems in several languages.

// readHeadings returns the meaning of the columns of a table, and the headings of those that are kept as custom text. Both are nil if no
// heading is known.
func readHeadings(names []string) (meanings, unknown []string) {
	known, labels := false, labelColumns(names)
	for i, name := range names {
		m := heading(name)
		if slices.Contains(labels, i) {
			m = labelColumn
		}
		known = known || m != "" && !strings.HasPrefix(m, "custom.")
		meanings = append(meanings, m)
	}
	if !known {
		return nil, nil
	}
	resolveNames(names, meanings)
	unknown = []string{}
	for i, m := range meanings {
		if strings.HasPrefix(m, "custom.") || m == "" && normalizeText(names[i]) != "" {
			unknown = append(unknown, truncateName(normalizeText(names[i])))
		}
	}
	return meanings, unknown
}

// resolveNames decides about headings whose meaning depends on the others: Name beside a first name is the last name. Nombre without one is
// the whole name. Title beside a job title is a form of address.
func resolveNames(names, meanings []string) {
	has := func(m string) bool { return slices.Contains(meanings, m) }
	first, last, job := has("first_name"), has("last_name"), has("title") && slices.ContainsFunc(names, isJobTitle)
	given := slices.ContainsFunc(meanings, func(m string) bool { return m == "given_or_name" })
	for i, m := range meanings {
		switch {
		case m == "given_or_name" && (last || has("family_or_name")):
			meanings[i] = "first_name"
		case m == "given_or_name":
			meanings[i] = "name"
		case m == "family_or_name" && (last || !first && !given):
			meanings[i] = "name"
		case m == "name" && plainHeading(names[i]) == "name" && first && !last:
			meanings[i] = "family_or_name"
		case m == "title" && job && !isJobTitle(names[i]):
			meanings[i] = "custom." + normalizeText(names[i])
		}
	}
}

func isJobTitle(name string) bool {
	plain := plainHeading(name)
	return headings[plain] == "title" && !slices.Contains([]string{"title", "titre", "titulo", "titolo"}, plain)
}

// plainHeading returns a heading in lower case, without accents, spaces and punctuation.
func plainHeading(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "ß", "ss")
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, norm.NFKD.String(name))
}

// headings maps plain headings to fields.
var headings = byField(map[string]string{
	"first_name": "firstname givenname vorname rufname forename fname first prenom nombredepila primernombre voornaam primeironome",
	"last_name": "lastname familyname surname nachname familienname zuname lname last nomdefamille apellido apellidos primerapellido cognome " +
		"achternaam sobrenome apelido",
	"given_or_name":  "nombre nome",
	"family_or_name": "nom",
	"name": "name fullname displayname contactname contact anzeigename angezeigtername kontakt kontaktname ansprechpartner nomcomplet nomaffiche " +
		"nombrecompleto nombreparamostrar nomecompleto nomevisualizzato contacto contatto naam volledigenaam fileas speichernunter",
	"company": "company companyname organization organisation organizationname account accountname firma firmenname unternehmen organization1name " +
		"associatedcompany societe entreprise raisonsociale empresa compania organizacion nombredelaempresa azienda societa ditta ragionesociale " +
		"organizzazione bedrijf bedrijfsnaam",
	"title": "title jobtitle position organization1title funktion berufsbezeichnung stellenbezeichnung poste fonction intituledeposte cargo puesto " +
		"posicion qualifica posizione ruolo mansione functie titre titulo titolo",
	"tags": "tags labels categories groups groupmembership kategorien kategorie gruppen schlagworte schlagworter markierungen categorie etiquettes " +
		"groupes categorias etiquetas grupos categoria etichette gruppi category group",
	"vip": "vip", "do_not_call": "donotcall dnc nichtanrufen nepasappeler nollamar nonchiamare",
})

func byField(fields map[string]string) map[string]string {
	all := map[string]string{}
	for field, names := range fields {
		for name := range strings.FieldsSeq(names) {
			all[name] = field
		}
	}
	return all
}

// A heading of a number or an address consists of the words below, in any order.
var headingWords = byField(map[string]string{
	"phone": "phone phones telephone tel telefon telefono telefoon telefone telefonnr telf tlf rufnummer fon festnetz fijo fisso fixe fixo landline " +
		"durchwahl ddi",
	"phone:mobile": "mobile mobil movil mobiel handy gsm portable cellulare celular cell cellular telemovel natel smartphone mob",
	"email":        "email mail courriel mel messagerie correo posta correio",
	"work": "work office geschaftlich geschaftl geschaft gesch dienstlich dienstl dienst buro arbeit bureau travail professionnel professionnelle pro " +
		"trabajo oficina profesional laboral ufficio lavoro werk zakelijk firma company entreprise societe empresa azienda direct direkt",
	"business": "business", "private": "private",
	"home": "home privat priv zuhause domicile personnel personnelle perso casa particular domicilio abitazione personale thuis prive personal",
	"other": "other andere anderes weitere weiteres weiterer autre otro otra altro altra overig assistant assistants asst car auto radio tty tdd isdn " +
		"alternate alternative secondary secondaire secundario secondario",
	"filler": "number numbers nummer nr no num numero value wert address adresse direccion indirizzo adres electronico elettronica electronique de del " +
		"du di da la le el il van the person main primary haupt principal principale zentrale preferred 0 1 2 3 4 5 6 7 8 9",
})

// headingKind is the meaning of a heading that consists of headingWords.
type headingKind struct{ kind, label string }

// heading returns the field of a column; "" if the column is ignored.
func heading(name string) string {
	name = normalizeText(name)
	plain := plainHeading(name)
	switch h, ok := headings[plain]; {
	case ok:
		return h
	case strings.Contains(plain, "fax"):
		return ""
	}
	if k, ok := split(plain, headingKind{}); ok {
		switch {
		case k.kind == "phone":
			return "phone:" + orLabel(k.label, "work")
		case k.kind == "email":
			return strings.TrimSuffix("email:"+k.label, ":")
		case k.label != "":
			return "phone?:" + k.label + ":" + name
		}
	}
	for _, end := range []struct{ sign, means string }{{"phone", "phone:work"}, {"telephone", "phone:work"}, {"mobile", "phone:mobile"},
		{"cell", "phone:mobile"}, {"email", "email"}, {"mail", "email"}} {
		if strings.HasSuffix(strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(plain, "value"), "number"), "0123456789"), end.sign) {
			return end.means
		}
	}
	if plain == "" || len(name) > maxName {
		return ""
	}
	return "custom." + name
}

func orLabel(label, otherwise string) string {
	if label == "" {
		return otherwise
	}
	return label
}

// split reads a heading as a sequence of words. ok is false if it is none.
func split(plain string, k headingKind) (headingKind, bool) {
	if plain == "" {
		return k, true
	}
	for end := min(len(plain), maxHeadingWord); end > 0; end-- {
		means, known := headingWords[plain[:end]]
		if !known {
			continue
		}
		if found, ok := split(plain[end:], k.with(means)); ok {
			return found, true
		}
	}
	return k, false
}

// maxHeadingWord is the length of the longest of headingWords.
const maxHeadingWord = 16

// with adds the meaning of a word. The first label counts, but a mobile phone is one wherever it is used.
func (k headingKind) with(means string) headingKind {
	switch kind, label, _ := strings.Cut(means, ":"); {
	case kind == "filler":
	case kind == "phone" || kind == "email":
		if k.kind == "" || kind == "email" { // E-mail of an office phone's owner: the address
			k.kind = kind
		}
		if label != "" && k.kind == "phone" {
			k.label = label
		}
	case k.label == "":
		k.label = kind
	}
	return k
}

// labelColumn is the meaning of a column that has the label of a value in another one, as exports of Google have it.
const labelColumn = "label"

// labelOf matches the heading of such a column, valueOf that of the values.
var (
	labelOf = regexp.MustCompile(`(?i)^\s*(.+?)\s*-\s*(?:type|label)\s*$`)
	valueOf = regexp.MustCompile(`(?i)^\s*(.+?)\s*-\s*value\s*$`)
)

// labelColumns returns the column with the label of each column, -1 if none has it.
func labelColumns(names []string) []int {
	byKind := map[string]int{}
	for i, name := range names {
		if m := labelOf.FindStringSubmatch(name); m != nil {
			byKind[plainHeading(m[1])] = i
		}
	}
	all := make([]int, len(names))
	for i, name := range names {
		all[i] = -1
		if m := valueOf.FindStringSubmatch(name); m != nil {
			if at, ok := byKind[plainHeading(m[1])]; ok {
				all[i] = at
			}
		}
	}
	return all
}

// withLabel returns a field of numbers or addresses with another label; "" for a fax.
func withLabel(field, label string) string {
	kind, _, _ := strings.Cut(field, ":")
	label = strings.TrimSpace(strings.Trim(normalizeText(label), "* ")) // Google marks the main one
	plain := plainHeading(label)
	switch k, known := split(plain, headingKind{}); {
	case kind != "phone" && kind != "email" || plain == "":
		return field
	case kind == "phone" && strings.Contains(plain, "fax"):
		return ""
	case known && k.label != "":
		return kind + ":" + k.label
	case known || utf8.RuneCountInString(label) > maxTag:
		return field
	}
	return kind + ":" + strings.ToLower(label)
}
