package provisioning

import (
	"regexp"
	"strings"
)

// File is a configuration file for a phone.
type File struct {
	Name string
	Type string // media type
	Body []byte
}

// fileKind is one kind of file of a vendor.
type kind struct {
	name   *regexp.Regexp // of the file; if it contains the phone's MAC address, that is the only group
	media  string
	common bool // the same for all phones of a vendor, and without secrets
	write  func(Phone) []byte
}

// vendorTemplate describes the files of one vendor's phones.
type vendor struct {
	id    string
	main  string         // file at the end of the address for a softphone; "": the phone appends the file name itself
	agent *regexp.Regexp // matches the User-Agent of its phones
	also  []string       // other names of the vendor, in lower case
	files []kind
	event func(reboot bool) string // event of the NOTIFY that makes it fetch again; nil: the usual one
}

const (
	mac    = `([0-9a-fA-F]{12})`
	xmlDoc = "application/xml"
	text   = "text/plain; charset=utf-8"
)

func file(pattern, media string, write func(Phone) []byte) kind {
	return kind{name: regexp.MustCompile(`^(?:` + pattern + `)$`), media: media, write: write}
}

func common(pattern, media string, write func(Phone) []byte) kind {
	k := file(pattern, media, write)
	k.common = true
	return k
}

// templates returns all templates. The last one is for all other phones.
func vendors() []vendor {
	return []vendor{
		{id: "yealink", agent: agent("yealink"), files: []kind{common(`y[0-9]{12}\.cfg`, text, yealinkCommon), file(mac+`\.cfg`, text, yealink)}},
		{id: "polycom", agent: agent("polycom|filetransport|polyedge|poly/"), also: []string{"poly", "hp poly", "hp"}, event: always("check-sync"),
			files: []kind{common(`0{12}\.cfg`, xmlDoc, polycomCommon), file(mac+`\.cfg`, xmlDoc, polycomMaster),
				file(mac+`-(?:reg|phone)\.cfg`, xmlDoc, polycom), file(mac+`-directory\.xml`, xmlDoc, polycomDirectory)}},
		{id: "grandstream", agent: agent("grandstream"), files: []kind{file(`cfg`+mac+`\.xml`, xmlDoc, grandstream)}},
		{id: "snom", agent: agent("snom"), files: []kind{file(`(?:settings-|snom[0-9A-Za-z]{1,10}-)?`+mac+`\.(?:xml|htm)`, xmlDoc, snom),
			file(`settings\.xml|snom[0-9A-Za-z]{1,10}\.(?:xml|htm)`, xmlDoc, snom)}},
		{id: "fanvil", agent: agent("fanvil"), files: []kind{file(mac+`\.(?:cfg|xml)`, xmlDoc, fanvil)}},
		{id: "linphone", main: "linphone.xml", agent: agent("linphone"), also: []string{"belledonne", "belledonne communications"},
			files: []kind{file(`linphone\.xml`, xmlDoc, linphone)}},
		{id: "acrobits", main: "acrobits.xml", agent: agent("acrobits|groundwire|cloudsoftphone|cloud softphone"), also: []string{"groundwire"},
			files: []kind{file(`acrobits\.xml`, xmlDoc, acrobits)}},
		{id: "generic", main: "phone.json", files: []kind{file(`phone\.json`, "application/json", genericJSON), file(`phone\.ini`, text, genericINI)}},
	}
}

func agent(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + words) }

func always(event string) func(bool) string { return func(bool) string { return event } }

// Templates returns the names of all templates.
func Templates() []string {
	var all []string
	for _, v := range vendors() {
		all = append(all, v.id)
	}
	return all
}

// Template returns the template of a phone from its record: template if it is set, else by vendorName. It returns ""
// if there is none.
func Template(template, vendorName string) string {
	for _, v := range vendors() {
		if v.named(template) || template == "" && v.named(vendorName) {
			return v.id
		}
	}
	return ""
}

func (v vendor) named(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == v.id {
		return true
	}
	for _, n := range v.also {
		if n == name {
			return true
		}
	}
	return false
}

// Main returns the file name at the end of a template's address, or "" if phones append the file name themselves.
func Main(template string) string {
	for _, v := range vendors() {
		if v.id == template {
			return v.main
		}
	}
	return ""
}

// Event returns the event of the NOTIFY that makes a phone with the template fetch its configuration again.
func Event(template string, reboot bool) string {
	for _, v := range vendors() {
		if v.id == template && v.event != nil {
			return v.event(reboot)
		}
	}
	if reboot {
		return "check-sync;reboot=true"
	}
	return "check-sync;reboot=false"
}

// matchedFile is the kind of file that a requested name stands for.
type wanted struct {
	template string
	mac      string // MAC address in the name: twelve lower-case hexadecimal digits, or ""
	kind     kind
}

// findFile returns the file that a phone requests. Without a template it is chosen by the User-Agent and the file
// name.
func find(template, userAgent, name string) (wanted, bool) {
	for _, v := range choice(template, userAgent) {
		file := name
		if file == "" {
			file = v.main
		}
		for _, k := range v.files {
			if m := k.name.FindStringSubmatch(file); m != nil {
				w := wanted{template: v.id, kind: k}
				if len(m) > 1 {
					w.mac = strings.ToLower(m[1])
				}
				return w, true
			}
		}
	}
	return wanted{}, false
}

// candidates lists the possible templates, the most likely first.
func choice(template, userAgent string) []vendor {
	var likely, rest []vendor
	for _, v := range vendors() {
		switch {
		case v.id == template:
			return []vendor{v}
		case v.agent != nil && v.agent.MatchString(userAgent):
			likely = append(likely, v)
		default:
			rest = append(rest, v)
		}
	}
	if template != "" {
		return nil
	}
	return append(likely, rest...)
}

// Render returns a file of a template; ok is false if the template has no file with the name.
func Render(template, name string, p Phone) (f File, ok bool) {
	w, ok := find(template, "", name)
	if !ok {
		return f, false
	}
	return w.render(name, p), true
}

func (w wanted) render(name string, p Phone) File {
	return File{Name: name, Type: w.kind.media, Body: w.kind.write(p.safe())}
}

// isKnownAgent reports whether a User-Agent is that of a template's phones.
func known(userAgent string) bool {
	for _, v := range vendors() {
		if v.agent != nil && v.agent.MatchString(userAgent) {
			return true
		}
	}
	return false
}
