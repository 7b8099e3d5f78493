package contact_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// encoded returns a text in an encoding.
func encoded(t *testing.T, text string, e interface{ String(string) (string, error) }) string {
	t.Helper()
	out, err := e.String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each property of a vCard 2.1 has its own character encoding (https://github.com/mangstadt/ez-vcard/issues/10).
func TestImport_CharsetOfProperties(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	card := func(name, phone string) string {
		return "BEGIN:VCARD\r\nVERSION:2.1\r\n" + name + "\r\nTEL;CELL:" + phone + "\r\nEND:VCARD\r\n"
	}
	file := card("N;CHARSET=ISO-8859-1:"+encoded(t, "Müller;Jörg", charmap.ISO8859_1.NewEncoder()), "07700 900001") +
		card("N;CHARSET=WINDOWS-1251:"+encoded(t, "Иванов;Пётр", charmap.Windows1251.NewEncoder()), "07700 900002") +
		card("N;CHARSET=KOI8-R;ENCODING=8BIT:"+encoded(t, "Петров;Иван", charmap.KOI8R.NewEncoder()), "07700 900003") +
		card("N;CHARSET=\"Shift_JIS\":"+encoded(t, "表;ソ", japanese.ShiftJIS.NewEncoder()), "07700 900004") +
		card("N;CHARSET=UTF-8:Łukasz;Żaneta", "07700 900005") + card("N:Čapek;Karel", "07700 900006") +
		card("N;CHARSET=IBM850:"+encoded(t, "Müller;Ömer", charmap.CodePage850.NewEncoder()), "07700 900007") +
		card("N;CHARSET=GB2312:"+encoded(t, "联;通", simplifiedchinese.GBK.NewEncoder()), "07700 900008") +
		card("N;CHARSET=EUC-KR:"+encoded(t, "김;민수", korean.EUCKR.NewEncoder()), "07700 900009") +
		card("N;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:M=FCller;J=\r\n=F6rg", "07700 900010") +
		card("N;CHARSET=WINDOWS-1251;ENCODING=BASE64:yOLg7e7iO8+48vA=", "07700 900011") +
		card("N;CHARSET=X-UNKNOWN:Müller;Jörg", "07700 900012") + card("N;CHARSET=UTF-8:M\xfcller;J", "07700 900013") +
		card("N;CHARSET=WINDOWS-1252:M\x81ller;J", "07700 900014") + card("N:M\xfcller;J", "07700 900015") +
		card("N;CHARSET=Shift_JIS:\x81", "07700 900016") + card("N;ENCODING=QUOTED-PRINTABLE:M=FCller", "07700 900017")
	a := h.waitImport(h.upload(file).Want(202).Text("id"))
	if a.At("created") != float64(11) || a.At("failed") != float64(6) {
		t.Fatalf("got %s", a.Bytes)
	}
	for i, want := range []string{"Jörg Müller", "Пётр Иванов", "Иван Петров", "ソ 表", "Żaneta Łukasz", "Karel Čapek", "Ömer Müller", "通 联", "민수 김",
		"Jörg Müller", "Пётр Иванов"} {
		if l := h.lookup(fmt.Sprintf("+4477009000%02d", i+1)).Want(200); l.Text("name") != want {
			t.Errorf("%d: %s, want %s", i+1, l.Text("name"), want)
		}
	}
	for i := range 6 {
		if a.Text(fmt.Sprintf("errors.%d.field", i)) != "N" || a.Text(fmt.Sprintf("errors.%d.code", i)) != "invalid_encoding" {
			t.Errorf("error %d of %s", i, a.Bytes)
		}
	}
}

// A file in one encoding of before, without labels, and one in UTF-16 are read as before.
func TestImport_EncodingOfFile(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	card := "BEGIN:VCARD\r\nVERSION:3.0\r\nN:Müller;Jörg\r\nTEL:07700 900001\r\nEND:VCARD\r\n"
	order := []byte{0xff, 0xfe}
	for _, c := range utf16.Encode([]rune(card)) {
		order = append(order, byte(c), byte(c>>8))
	}
	for name, file := range map[string]string{"windows-1252": encoded(t, card, charmap.Windows1252.NewEncoder()), "UTF-8": card, "BOM": "\ufeff" + card,
		"UTF-16": string(order), "UTF-16 without mark": string(order[2:]), "BOM with a label": "\ufeff" + strings.Replace(card, "\nN:", "\nN;CHARSET=ISO-8859-1:", 1)} {
		a := h.waitImport(h.upload(file, "duplicates=create", "format=vcard").Want(202).Text("id"))
		if a.At("created") != float64(1) || a.At("failed") != float64(0) {
			t.Errorf("%s: %s", name, a.Bytes)
		}
	}
	text := strings.Replace(card, "\nN:", "\nN;CHARSET=ISO-8859-1:", 1) // in JSON it is Unicode
	if a := h.waitImport(h.do("POST", "/crm/imports", map[string]any{"content": text, "duplicates": "create"}).Want(202).Text("id")); a.At("created") != float64(1) {
		t.Errorf("JSON: %s", a.Bytes)
	}
	all := h.do("GET", "/contacts?q=M%C3%BCller&limit=50", nil).Want(200)
	for i := range 7 {
		if got := all.Text(fmt.Sprintf("data.%d.name", i)); got != "Jörg Müller" {
			t.Errorf("%d is %q", i, got)
		}
	}
}

// The headings of common exports give numbers and addresses, whatever their language.
//
// https://github.com/fusionpbx/fusionpbx/issues/1871, https://github.com/fusionpbx/fusionpbx/issues/1027
func TestImport_HeadingsOfExports(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.runJobs()
		for name, c := range map[string]struct{ file, want, unknown string }{
			"Outlook": {"Title,First Name,Middle Name,Last Name,Company,Job Title,Business Fax,Business Phone,Home Phone 2,Mobile Phone,E-mail Address,E-mail Type,E-mail 2 Address\n" +
				"Dr,Ada,K,Lovelace,Engines,Analyst,020 7946 0001,020 7946 0018,020 7946 0019,07700 900123,ada@example.com,SMTP,ada2@example.com\n",
				"Ada Lovelace|Engines|Analyst|business +442079460018,home +442079460019,mobile +447700900123|ada@example.com,ada2@example.com",
				"[Title Middle Name Business Fax E-mail Type]"},
			"LinkedIn": {"Notes:\n\"When exporting your connection data, you may notice that some of the email addresses are missing.\"\n\n" +
				"First Name,Last Name,URL,Email Address,Company,Position,Connected On\nAda,Lovelace,https://www.linkedin.com/in/ada,ada@example.com,Engines,Analyst,01 Jan 2026\n",
				"Ada Lovelace|Engines|Analyst||ada@example.com", "[URL Connected On]"},
			"Outlook in German": {"Anrede;Vorname;Nachname;Firma;Position;Telefon geschäftlich;Telefon (privat);Mobiltelefon;Weiteres Telefon;Fax privat;E-Mail-Adresse;E-Mail 2: Adresse\r\n" +
				"Frau;Ada;Lovelace;Engines;Analystin;020 7946 0018;020 7946 0019;07700 900123;020 7946 0017;020 7946 0001;ada@example.com;ada2@example.com\r\n",
				"Ada Lovelace|Engines|Analystin|work +442079460018,home +442079460019,mobile +447700900123,other +442079460017|ada@example.com,ada2@example.com",
				"[Anrede Fax privat]"},
			"German": {"Name;Vorname;Telefon;Handynummer;E-Mail\nLovelace;Ada;020 7946 0018;07700 900123;ada@example.com\n",
				"Ada Lovelace|||work +442079460018,mobile +447700900123|ada@example.com", "[]"},
			"French": {"Nom;Prénom;Société;Fonction;Téléphone (bureau);Tél. mobile;Téléphone domicile;Adresse de messagerie\nLovelace;Ada;Engines;Analyste;020 7946 0018;07700 900123;020 7946 0019;ada@example.com\n",
				"Ada Lovelace|Engines|Analyste|work +442079460018,mobile +447700900123,home +442079460019|ada@example.com", "[]"},
			"Spanish": {"Nombre,Apellidos,Empresa,Puesto,Teléfono del trabajo,Teléfono móvil,Particular: Teléfono,Dirección de correo electrónico\nAda,Lovelace,Engines,Analista,020 7946 0018,07700 900123,020 7946 0019,ada@example.com\n",
				"Ada Lovelace|Engines|Analista|work +442079460018,mobile +447700900123,home +442079460019|ada@example.com", "[]"},
			"Italian": {"Nome;Cognome;Società;Qualifica;Telefono ufficio;Cellulare;Telefono abitazione;Indirizzo posta elettronica\nAda;Lovelace;Engines;Analista;020 7946 0018;07700 900123;020 7946 0019;ada@example.com\n",
				"Ada Lovelace|Engines|Analista|work +442079460018,mobile +447700900123,home +442079460019|ada@example.com", "[]"},
			"3CX": {"FirstName,LastName,Company,Mobile,Mobile2,Home,Home2,Business,Business2,Email,Other,BusinessFax,HomeFax,Pager\nAda,Lovelace,Engines,07700 900123,,020 7946 0019,,020 7946 0018,,ada@example.com,020 7946 0017,020 7946 0001,,\n",
				"Ada Lovelace|Engines||mobile +447700900123,home +442079460019,business +442079460018,other +442079460017|ada@example.com",
				"[BusinessFax HomeFax Pager]"},
			"FreePBX": {"username,fname,lname,title,work,cell,home,fax,email\nada,Ada,Lovelace,Analyst,020 7946 0018,07700 900123,020 7946 0019,,ada@example.com\n",
				"Ada Lovelace||Analyst|work +442079460018,mobile +447700900123,home +442079460019|ada@example.com", "[username fax]"},
			"sep=":                     {"sep=;\r\nFirst Name;Phone\r\nAda;020 7946 0018\r\n", "Ada|||work +442079460018|", "[]"},
			"tabs":                     {"\"sep=\t\"\nFirst Name\tPhone\nAda\t020 7946 0018\n", "Ada|||work +442079460018|", "[]"},
			"CR":                       {"First Name,Phone\rAda,020 7946 0018\r", "Ada|||work +442079460018|", "[]"},
			"a word that is no number": {"First Name,Business,Phone\nAda,Engines and looms,020 7946 0018\n", "Ada|||work +442079460018|", "[]"},
			"Nombre alone":             {"Nombre,Teléfono\nAda Lovelace,020 7946 0018\n", "Ada Lovelace|||work +442079460018|", "[]"},
			"fractions":                {"First Name,Phone\nAda,442079460018.0\n", "Ada|||work +442079460018|", "[]"},
		} {
			a := h.waitImport(h.upload(c.file, "duplicates=create").Want(202).Text("id"))
			if a.Text("status") != "completed" || a.At("created") != float64(1) || fmt.Sprint(a.At("unknown_columns")) != c.unknown {
				t.Errorf("%s: %s, want the unknown columns %s", name, a.Bytes, c.unknown)
			}
			got := h.do("GET", "/contacts?limit=1", nil).Want(200)
			if line := contactLine(got.At("data.0").(map[string]any)); line != c.want {
				t.Errorf("%s: %s, want %s", name, line, c.want)
			}
			h.do("DELETE", "/contacts/"+got.Text("data.0.id"), nil).Want(204)
		}
	})
}

// contactLine returns the values of a contact that an import sets.
func contactLine(c map[string]any) string {
	var phones, emails []string
	for _, p := range c["phones"].([]any) {
		p := p.(map[string]any)
		phones = append(phones, fmt.Sprint(p["label"], " ", p["number"]))
	}
	for _, e := range c["emails"].([]any) {
		emails = append(emails, fmt.Sprint(e.(map[string]any)["value"]))
	}
	return strings.Join([]string{fmt.Sprint(c["name"]), fmt.Sprint(c["company"]), fmt.Sprint(c["title"]), strings.Join(phones, ","),
		strings.Join(emails, ",")}, "|")
}

// A text that is no number is a line in errors. An incomplete number, such as an extension, is kept.
func TestImport_NoNumberIsError(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	bad := []string{"4.47912E+11", `"4,47912E+11"`, "4.47912345678E+11", "n/a", "see notes 123", "#N/A", "12:30:45", "ask Bob 020"}
	good := []string{"101", "946 0018", "020 7946 0018\u202c", "'020 7946 0018", "(020) 7946-0018 ext 12", "946 0018 x12", "020 7946 0018;"}
	file := "name;phone\n"
	for i, text := range append(append([]string{}, bad...), good...) {
		file += fmt.Sprintf("P%d;\"%s\"\n", i, strings.Trim(text, `"`))
	}
	a := h.waitImport(h.upload(file, "duplicates=create").Want(202).Text("id"))
	if a.At("failed") != float64(len(bad)) || a.At("created") != float64(len(good)) {
		t.Errorf("got %s", a.Bytes)
	}
	for i := range bad {
		if a.At(fmt.Sprintf("errors.%d.line", i)) != float64(i+2) || a.Text(fmt.Sprintf("errors.%d.field", i)) != "phones.0.number" {
			t.Errorf("%s: %s", bad[i], a.Bytes)
		}
	}
	if !strings.Contains(a.Text("errors.0.message"), "spreadsheet") {
		t.Errorf("says %s", a.Text("errors.0.message"))
	}
}

// A file with text and no records has failed. Files with the line ends of old programs have records.
func TestImport_NoRecordsFails(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	for name, fields := range map[string][]string{"name,phone\n": nil, "name,phone\n\n,,\n , \n": nil, "VERSION:3.0\nFN:Ada\n": {"format=vcard"}} {
		a := h.waitImport(h.upload(name, fields...).Want(202).Text("id"))
		if a.Text("status") != "failed" || !strings.Contains(a.Text("error"), "no records") {
			t.Errorf("%q: %s", name, a.Bytes)
		}
	}
	card := "BEGIN:VCARD\rVERSION:3.0\rFN:Ada Lovelace\rTEL:07700\r  900123\rEND:VCARD\r"
	if a := h.waitImport(h.upload(card).Want(202).Text("id")); a.Text("status") != "completed" || a.At("created") != float64(1) {
		t.Errorf("CR: %s", a.Bytes)
	}
}

// The notes of a vCard and the labels that Apple writes are kept.
func TestImport_NotesAndLabels(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	long := strings.Repeat("ä", 1500)
	file := "BEGIN:VCARD\nVERSION:3.0\nFN:Ada Lovelace\nNOTE:likes\\nlooms\nitem1.TEL:020 7946 0018\nitem1.X-ABLabel:Front desk\n" +
		"item2.TEL;type=WORK:07700 900123\nitem2.X-ABLabel:_$!<Mobile>!$_\nitem3.TEL:020 7946 0001\nitem3.X-ABLabel:_$!<WorkFAX>!$_\n" +
		"item4.EMAIL:ada@example.com\nitem4.X-ABLabel:Loom\nEND:VCARD\nBEGIN:VCARD\nFN:Long\nTEL:101\nNOTE:" + long + "\nEND:VCARD\n"
	if a := h.waitImport(h.upload(file).Want(202).Text("id")); a.At("created") != float64(2) {
		t.Fatalf("got %s", a.Bytes)
	}
	c := h.do("GET", "/contacts?q=lovelace", nil).Want(200)
	if c.Text("data.0.custom.note") != "likes\nlooms" || c.Text("data.0.phones.0.label") != "front desk" || c.Text("data.0.phones.1.label") != "mobile" ||
		c.At("data.0.phones.2") != nil || c.Text("data.0.emails.0.label") != "loom" {
		t.Errorf("imported %s", c.Bytes)
	}
	l := h.do("GET", "/contacts?q=long", nil).Want(200)
	if l.Text("data.0.custom.note")+l.Text("data.0.custom.note 2") != long {
		t.Errorf("imported %s", l.Bytes)
	}
}
