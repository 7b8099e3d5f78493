package browser

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// A contact is made, found, changed and deleted. Its calls, messages, notes and facts are on its page.
func TestConsole_Contacts(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "a browser works with contacts, and each state is examined in three sizes and colours")
	office := newOffice(t)
	p, _ := openConsole(office, "agent", "/console/contacts", "440")
	p.shows("There are no contacts yet. Add one, or import a file.")
	p.checked("contacts-empty")
	p.click("link", "New contact")
	p.types("textbox", "First name", "Ada")
	p.types("textbox", "Last name", "Byron")
	p.types("textbox", "Company", "Harbor Dental")
	p.types("textbox", "Number 1", "12")
	p.click("button", "Save")
	p.shows("not a valid number")
	p.checked("contact-form")
	p.types("textbox", "Number 1", "(212) 555-0101")
	p.types("textbox", "Kind 1", "mobile")
	p.click("button", "Add e-mail address")
	p.types("textbox", "E-mail address 1", "ada@harbor.example")
	p.types("textbox", "Tags, with commas between", "gold, dental")
	p.selectOption("Looked after by", "Dana Reed")
	p.click("checkbox", "Important")
	p.click("button", "Save")
	p.has("heading", "Ada Byron")
	p.shows("+1 212 555 0101", "ada@harbor.example", "gold", "Important", "Added here")

	way := office.AddCarrier("", nil)
	carrier := newTextCarrier(t, office, way.Trunk, reception)
	carrier.post(map[string]string{"mid": "in1", "from": customer, "to": reception, "text": "Is nine still free?"})
	p.shows("Is nine still free?")
	p.types("textbox", "New note", "Prefers mornings.")
	p.click("button", "Add note")
	p.shows("Prefers mornings.")
	p.types("textbox", "New fact", "Has two practices.")
	p.click("button", "Add")
	p.shows("Has two practices.", "written by a person")
	p.checked("contact")
	p.click("link", "Text: Ada Byron")
	p.has("log", "Messages with Ada Byron")
	p.click("link", "Ada Byron")
	p.click("link", "Edit")
	p.types("textbox", "Title", "Dentist")
	p.click("button", "Save")
	p.shows("Dentist")
	p.click("link", "Contacts")
	p.types("searchbox", "Name, company, number or e-mail", "nobody")
	p.shows("No contact matches the search.")
	p.types("searchbox", "Name, company, number or e-mail", "harbor")
	p.has("link", "Ada Byron")
	p.checked("contacts")
	p.click("link", "Ada Byron")
	p.click("button", "Delete")
	p.call(p.has("dialog", "Delete Ada Byron?"), "function() { this.querySelector('.danger').click(); }")
	p.shows("There are no contacts yet.")
	p.faultless("status of 422")
}

// A file is imported, and the page lists the lines that could not be read. Two contacts of the same person are merged.
func TestConsole_ImportAndMerge(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 3*time.Minute, "a browser imports and merges contacts, and each state is examined in three sizes and colours")
	office := newOffice(t)
	p, _ := openConsole(office, "agent", "/console/contacts", "440")
	file := filepath.Join(t.TempDir(), "people.csv")
	text := "First name,Last name,Company,Phone,Shoe size\nAda,Byron,Harbor Dental,+1 212 555 0101,38\nAda,Byron,,+1 212 555 0102,\nBob,Marsh,,no number,\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.click("link", "Import")
	p.attachFile("File", file)
	p.click("radio", "update from the file")
	p.checked("contacts-import")
	p.click("button", "Import")
	p.shows("completed", "3 records were read.", "Shoe size", "not a valid number for US")
	p.checked("contacts-imported")
	p.click("link", "Show the contacts")
	p.clickText("link", "Ada Byron")
	p.click("link", "Merge")
	p.clickText("button", "Ada Byron")
	p.has("columnheader", "Afterwards")
	p.shows("+1 212 555 0101", "+1 212 555 0102")
	p.checked("contacts-merge")
	p.click("button", "Swap")
	p.clickText("button", "Merge, and remove")
	p.has("heading", "Ada Byron")
	p.shows("+1 212 555 0101", "+1 212 555 0102", "An imported file")
	var all struct {
		Data []struct {
			Company string
			Phones  []struct{ Number string }
		}
	}
	office.Want(200, "GET", "/contacts?q=byron", nil, &all)
	if len(all.Data) != 1 || len(all.Data[0].Phones) != 2 || all.Data[0].Company != "Harbor Dental" {
		t.Errorf("after the merge: %+v", all)
	}
	p.faultless()
}
