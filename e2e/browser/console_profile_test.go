package browser

import (
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// An agent changes their own settings. Theme, language and ringtone come back in another browser; forwarding, mailbox and time zone are
// what the administrator reads; a refused PIN is told at its field. The check of the microphone hears the tone of the microphone.
func TestConsole_Profile(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 3*time.Minute, "two browsers change settings, and a page is examined in three sizes and colours")
	office := newOffice(t)
	office.AddUser("Bob")
	p, user := colleague(office, "Dana", "Reed", "agent", "/console/desk", "440")
	p.click("button", "Turn on the phone")
	p.has("button", "Phone ready")
	p.clickInMenu("Dana Reed, Org of "+t.Name(), "menuitem", "My profile and sounds")
	p.at("/console/profile")
	p.has("heading", "My phones")
	p.shows("this browser", "Calls reach it", mailOf(t, "Dana"))
	p.click("button", "Check the microphone")
	p.shows("You can be heard.")
	p.checked("profile")
	p.click("button", "End the check")
	p.shows("Shows whether you can be heard.")

	p.selectOption("When nobody answers", "Bob (100)")
	p.types("spinbutton", "Seconds that my phones ring", "12")
	p.selectOption("When I am busy or decline", "To a number…")
	p.types("textbox", "When I am busy or decline: number", "+1 212 555 0101")
	p.pressIn("When I cannot answer", "Save")
	p.click("checkbox", "Callers may leave a message")
	p.types("textbox", "PIN for listening by telephone", "1111")
	p.pressIn("My mailbox", "Save")
	p.shows("PIN for listening by telephone: ")
	p.types("textbox", "PIN for listening by telephone", "2580")
	p.pressIn("My mailbox", "Save")
	p.shows("A PIN is set.")
	p.selectOption("Time zone", "Europe/Berlin")
	p.pressIn("My calls", "Save")
	var stored struct {
		Timezone string
		Forward  struct {
			Busy    string
			No      string `json:"no_answer"`
			Seconds int    `json:"no_answer_seconds"`
		}
		Voicemail struct {
			Enabled bool
			Pin     bool `json:"pin_set"`
		}
	}
	rig.Until(t, "the settings to be stored", time.Minute, func() bool {
		office.Want(200, "GET", "/users/"+user.ID, nil, &stored)
		return stored.Timezone == "Europe/Berlin"
	})
	if f := stored.Forward; f.Busy != "+12125550101" || f.No != "ext:100" || f.Seconds != 12 || !stored.Voicemail.Enabled ||
		!stored.Voicemail.Pin {
		t.Errorf("the server has %+v", stored)
	}
	p.selectOption("Ringtone", "Bright")
	p.click("button", "Hear it")
	p.click("radio", "Dark")
	p.selectOption("Language of the console", "Deutsch")
	p.has("heading", "Mein Profil und Töne")

	other := &consolePage{person: &person{t: t, base: p.base, chromium: open(t, tone(t, "440"),
		p.base+"/account/login?next=/console/profile", consoleFlags...)}}
	other.watch()
	other.signIn(mailOf(t, "Dana"))
	other.has("heading", "Mein Profil und Töne")
	var theme, ringtone string
	until(t, "the theme and the ringtone in another browser", pageTime, func() bool {
		other.eval(&theme, "document.documentElement.dataset.theme ?? ''")
		other.eval(&ringtone, `JSON.parse(localStorage.getItem("soniq-sound") ?? "{}").ringtone ?? ""`)
		return theme == "dark" && ringtone == "bright"
	})
	other.checked("profile-de")
	other.faultless("favicon.ico") // of the account page
	p.faultless("status of 422")
}

// pressIn presses the button with a name in the form with a name.
func (p *consolePage) pressIn(form, name string) {
	p.t.Helper()
	p.call(p.has("form", form), `function(name) {
		const button = [...this.querySelectorAll("button")].find((b) => b.innerText.trim() === name);
		if (button.disabled) throw new Error(name + " is disabled");
		button.click();
	}`, name)
}
