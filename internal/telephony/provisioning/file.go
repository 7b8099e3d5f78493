package provisioning

import (
	"regexp"
	"strings"
)

// A File is one that a phone fetches.
type File struct {
	Name string
	Type string // media type
	Body []byte
}

// A kind is one sort of file of a vendor.
type kind struct {
	name   *regexp.Regexp // of the file, with the phone's MAC address as its only group where it is in it
	media  string
	common bool // the same for all phones of a vendor: carries no secret
	write  func(Phone) []byte
}

// A vendor is a template.
type vendor struct {
	id    string
	main  string         // the file whose address a softphone is given; "" : the phone makes up names by itself
	agent *regexp.Regexp // how its phones introduce themselves
	also  []string       // names its vendor goes by, in small letters
	files []kind
	event func(reboot bool) string // of the NOTIFY that has it fetch again; nil: that of most
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

// vendors are the templates there are. What no other is for is the last's.
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

// Templates are the names of the templates there are.
func Templates() []string {
	var all []string
	for _, v := range vendors() {
		all = append(all, v.id)
	}
	return all
}

// Template is the template of a phone, by what its record says; "" where that says nothing.
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

// Main is the file that the address of a template names; "" where phones name their files themselves.
func Main(template string) string {
	for _, v := range vendors() {
		if v.id == template {
			return v.main
		}
	}
	return ""
}

// Event is the event of the NOTIFY that has a phone of a template fetch its configuration again.
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

// A wanted file is one that a name stands for.
type wanted struct {
	template string
	mac      string // in the name; twelve small hexadecimal digits, or ""
	kind     kind
}

// find says which file a phone means, of a template or, where none is known, by the phone's user agent and the name itself.
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

// choice lists the templates that may be meant, the likeliest first.
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

// Render writes the file of a template; ok is false where the template has none of that name.
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

// known reports whether a user agent is one of a template's.
func known(userAgent string) bool {
	for _, v := range vendors() {
		if v.agent != nil && v.agent.MatchString(userAgent) {
			return true
		}
	}
	return false
}
