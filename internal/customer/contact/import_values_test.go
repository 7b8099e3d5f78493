package contact_test

import (
	"fmt"
	"strings"
	"testing"

	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// numbersOf returns the numbers of the only contact with their labels, and its custom members.
func numbersOf(a *optest.Answer) string {
	var all []string
	for i := 0; ; i++ {
		at := fmt.Sprintf("data.0.phones.%d.", i)
		if !a.Has("data.0.phones."+fmt.Sprint(i), "number") {
			break
		}
		label, _ := a.At(at + "label").(string)
		all = append(all, strings.TrimSpace(label+" "+a.Text(at+"number")))
	}
	return strings.Join(all, ", ") + fmt.Sprint(" ", a.At("data.0.custom"))
}

// TestImport_SeveralValuesOfCells proves that a label in another column is that of the number, and that all numbers of a cell are read.
//
// https://github.com/owncloud-archive/contacts/issues/817
// https://github.com/cluster-software/agent-crm/pull/88
// https://github.com/ONLYOFFICE/CommunityServer/issues/68
func TestImport_SeveralValuesOfCells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"Google, types": {"Name,Phone 1 - Type,Phone 1 - Value,Phone 2 - Type,Phone 2 - Value\nAda,Mobile,07700 900123 ::: 07700 900124,* Home,020 7946 0018\n",
			"mobile +447700900123, mobile +447700900124, home +442079460018 map[]"},
		"Google, labels": {"First Name,E-mail 1 - Label,E-mail 1 - Value,Phone 1 - Label,Phone 1 - Value,Phone 2 - Label,Phone 2 - Value\nAda,* Home,a@example.com,Work Fax,020 7946 0011,Reception,020 7946 0018\n",
			"reception +442079460018 map[]"},
		"a type of something else": {"Name,Phone,Account - Type\nAda,020 7946 0018,Gold\n", "work +442079460018 map[Account - Type:Gold]"},
		"semicolon":                {"Name,Phone\nAda,020 7946 0018; 020 7946 0019\n", "work +442079460018, work +442079460019 map[]"},
		"comma":                    {"Name,Phone\nAda,\"020 7946 0018,020 7946 0019\"\n", "work +442079460018, work +442079460019 map[]"},
		"slash":                    {"Name,Phone\nAda,020 7946 0018 / 020 7946 0019\n", "work +442079460018, work +442079460019 map[]"},
		"a slash in a number":      {"Name,Phone\nAda,020/79460018\n", "work +442079460018 map[]"},
		"digits after a pause":     {"Name,Phone\nAda,\"+442079460018,,123#\"\n", "work +442079460018 map[]"},
		"an extension":             {"Name,Phone\nAda,+442079460018;ext=12\n", "work +442079460018 map[]"},
		"tel in upper case":        {"BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ada\r\nTEL;VALUE=uri;TYPE=home:TEL:+44-20-7946-0018\r\nEND:VCARD\r\n", "home +442079460018 map[]"},
	} {
		h := newFixture(t, dbtest.SQLite(t))
		h.runJobs()
		a := h.waitImport(h.upload(c.file).Want(202).Text("id"))
		all := h.do("GET", "/contacts?limit=5", nil).Want(200)
		if got := numbersOf(all); got != c.want || strings.Contains(string(all.Bytes), "TEL:") {
			t.Errorf("%s: %s, want %s; import %s", name, got, c.want, a.Bytes)
		}
	}
}

// TestImport_NumberIsEnough proves that a row with a number alone is a contact, whatever the heading is and however the number is written.
// The number is no custom member, and the contact is recognised by it when the file comes again.
//
// https://github.com/cluster-software/agent-crm/issues/84
// https://github.com/chatwoot/chatwoot/issues/3462
// https://github.com/NETivism/netiCRM/issues/54
func TestImport_NumberIsEnough(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"phone\n020 7946 0018\n":                "work +442079460018 map[]",
		"mobile\n07700-900123\n":                "mobile +447700900123 map[]",
		"phone_number\n(020) 7946-0018\n":       "work +442079460018 map[]",
		"mobile_number\n07700 900-123\n":        "mobile +447700900123 map[]",
		"work_phone\n+44-20-7946-0018\n":        "work +442079460018 map[]",
		"personal_phone_2\n0044-20-79460018\n":  "home +442079460018 map[]",
		"name,phone\nAda,020-7946-0018\n":       "work +442079460018 map[]",
		"name,email,phone\nAda,,020-79460018\n": "work +442079460018 map[]",
		"id,name,identifier,email,phone_number\n1,Ada,ada-1,ada@example.com,+442079460018\n": "work +442079460018 map[id:1 identifier:ada-1]",
		"id,first_name,last_name,phone_number\n7,,,020-7946-0018\n":                          "work +442079460018 map[id:7]",
	} {
		h := newFixture(t, dbtest.SQLite(t))
		h.runJobs()
		a := h.waitImport(h.upload(file).Want(202).Text("id"))
		all := h.do("GET", "/contacts?limit=5&include_total=true", nil).Want(200)
		if got := numbersOf(all); got != want || all.At("total") != float64(1) || a.At("created") != float64(1) {
			t.Errorf("%q: %s, want %s; import %s", file, got, want, a.Bytes)
		}
		for _, again := range []string{file, strings.ReplaceAll(file, "-", ""), strings.ReplaceAll(file, "7946-0018", "79-46-00-18")} {
			if a := h.waitImport(h.upload(again).Want(202).Text("id")); a.At("skipped") != float64(1) || a.At("created") != float64(0) {
				t.Errorf("%q again as %q: %s", file, again, a.Bytes)
			}
		}
	}
}

// vCards of telephones and address books that other programs could not read: https://github.com/nextcloud/contacts/issues/1297,
// https://github.com/nextcloud/contacts/issues/4357, https://github.com/Rillke/Contact-Conversion-Wizard/issues/9,
// https://github.com/pinoaffe/org-vcard/issues/6, https://github.com/owncloud-archive/contacts/issues/774,
// https://github.com/abdelkader/vCardEditor/issues/26, https://github.com/nextcloud/contacts/issues/224,
// https://github.com/nextcloud/contacts/issues/4571, https://github.com/SimpleMobileTools/Simple-Contacts/issues/1047,
// https://github.com/owncloud/contacts/issues/485.
func TestImport_CardsOfReports(t *testing.T) {
	t.Parallel()
	for card, want := range map[string]string{
		"VERSION:3.0\r\nFN:Ada\r\n" +
			"TEL;TYPE=\"WORK,FAX\":205246\\;\\;\\,\\;\r\nTEL;TYPE=\"WORK,VOICE\";VALUE=UNKNOWN:+442079460018": "work +442079460018 map[]",
		"VERSION:4.0\r\n" +
			"FN:Ada\r\nTEL;VALUE=uri;TYPE=home:tel:+44-20-7946-0018": "home +442079460018 map[]",
		"VERSION:2.1\r\nN;CHARSET=UTF-8:Пупкин;Василий\r\nTEL;HOME:+74951234568\r\n" +
			"TEL;FAX:+74951234560\r\nTEL;CELL:+79161234567\r\nTEL:+74951234561": "home +74951234568, mobile +79161234567, +74951234561 map[]",
		"VERSION:3.0\r\nFN:Z New Rp: Wr.no\r\n" +
			"N:Rp\\: Wr.no;Z New;;;\r\nTEL;TYPE=MAIN:+919999999999": "+919999999999 map[]",
		"VERSION:3.0\r\nFN:Ada\r\n" +
			"PHONE.WORK:+44 20 7946 0018\r\nPhone.Mobile;PREF=1:+44 7700 900001\r\n" +
			"MOBILE:+44 7700 900002": "work +442079460018, mobile +447700900001, mobile +447700900002 map[]",
		"VERSION:3.0\r\nFN:Ada\r\nTEL.HOME:+44 20 7946 0018\r\n" +
			"PHONE.FAX:+44 20 7946 0019\r\nFAX:+44 20 7946 0020\r\nitem1.TELEPHONE:+44 20 7946 0021\r\nitem1.X-ABLABEL:Boat": "home +442079460018, boat +442079460021 map[]",
		"VERSION:3.0\r\nITEMTEL49.TEL:+49 1573 1234567\r\n" +
			"ITEMTEL49.X-ABLABEL:Mobil\r\nFN:Ada": "mobil +4915731234567 map[]",

		"VERSION:3.0\r\nFN:Mampfred Mueller\r\nN:M. Mueller;020;;;\r\nEMAIL;TYPE=INTERNET;TYPE=HOME:m@example.com\r\n" +
			"TEL;TYPE=CELL:+491701234567\r\nCATEGORIES:myContacts": "mobile +491701234567 map[]",
		"VERSION:2.1\r\nN:Lovelace;Ada;;;\r\nFN:Ada\r\nSOUND;X-IRMC-N:;;;;\r\nTEL;CELL;PREF:+447700900001\r\n" +
			"X-ANDROID-CUSTOM:vnd.android.cursor.item/nickname;A;1;;;;;;;;;;;;;": "mobile +447700900001 map[]",
		"VERSION:3.0\r\nN:Contacts;Test;;;\r\nTEL;type=CELL:+447700900002\r\n" +
			"PRODID:-//ContactsKit //intsig.com //1.0": "mobile +447700900002 map[]",
	} {
		h := newFixture(t, dbtest.SQLite(t))
		h.runJobs()
		a := h.waitImport(h.upload("BEGIN:VCARD\r\n" + card + "\r\nEND:VCARD\r\n").Want(202).Text("id"))
		if got := numbersOf(h.do("GET", "/contacts?limit=5", nil).Want(200)); got != want {
			t.Errorf("%s: %s, want %s; import %s", card, got, want, a.Bytes)
		}
	}
}

// TestImport_CardsWithoutProperties has cards of a converter that wrote the headings of a table as properties. None is imported, and the
// import says so.
// https://github.com/owncloud-archive/apps/issues/724
func TestImport_CardsWithoutProperties(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	const cards = "BEGIN:VCARD\nGroup: \nFirst name:Eddie\nLast name: \nE-Mail 2:eddie@example.org\nEND:VCARD\n\n" +
		"BEGIN:VCARD\nFirst name:Eric\nHome phone:022323232\nCell phone:0633333339\nE-Mail 2:eric@example.org\nEND:VCARD\n"
	a := h.waitImport(h.upload(cards).Want(202).Text("id"))
	if a.At("created") != float64(0) || a.At("failed") != float64(2) {
		t.Errorf("got %s", a.Bytes)
	}
}
