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
type fileKind struct {
	name   *regexp.Regexp // of the file; if it contains the phone's MAC address, that is the only group
	media  string
	common bool // the same for all phones of a vendor, and without secrets
	write  func(Phone) []byte
}

// vendorTemplate describes the files of one vendor's phones.
type vendorTemplate struct {
	id       string
	mainFile string         // file at the end of the address for a softphone; "": the phone appends the file name itself
	agent    *regexp.Regexp // matches the User-Agent of its phones
	aliases  []string       // other names of the vendor, in lower case
	files    []fileKind
	event    func(reboot bool) string // event of the NOTIFY that makes it fetch again; nil: the usual one
}

const (
	mac    = `([0-9a-fA-F]{12})`
	xmlDoc = "application/xml"
	text   = "text/plain; charset=utf-8"
)

func phoneFile(pattern, media string, write func(Phone) []byte) fileKind {
	return fileKind{name: regexp.MustCompile(`^(?:` + pattern + `)$`), media: media, write: write}
}

func commonFile(pattern, media string, write func(Phone) []byte) fileKind {
	k := phoneFile(pattern, media, write)
	k.common = true
	return k
}

// templates returns all templates. The last one is for all other phones.
func templates() []vendorTemplate {
	return []vendorTemplate{
		{id: "yealink", agent: agentPattern("yealink"), files: []fileKind{commonFile(`y[0-9]{12}\.cfg`, text, yealinkCommon),
			phoneFile(mac+`\.cfg`, text, yealink)}},
		{id: "polycom", agent: agentPattern("polycom|filetransport|polyedge|poly/"), aliases: []string{"poly", "hp poly", "hp"},
			event: fixedEvent("check-sync"),
			files: []fileKind{commonFile(`0{12}\.cfg`, xmlDoc, polycomCommon), phoneFile(mac+`\.cfg`, xmlDoc, polycomMaster),
				phoneFile(mac+`-(?:reg|phone)\.cfg`, xmlDoc, polycom), phoneFile(mac+`-directory\.xml`, xmlDoc, polycomDirectory)}},
		{id: "grandstream", agent: agentPattern("grandstream"), files: []fileKind{phoneFile(`cfg`+mac+`\.xml`, xmlDoc, grandstream)}},
		{id: "snom", agent: agentPattern("snom"), files: []fileKind{phoneFile(`(?:settings-|snom[0-9A-Za-z]{1,10}-)?`+mac+`\.(?:xml|htm)`,
			xmlDoc, snom),
			phoneFile(`settings\.xml|snom[0-9A-Za-z]{1,10}\.(?:xml|htm)`, xmlDoc, snom)}},
		{id: "fanvil", agent: agentPattern("fanvil"), files: []fileKind{phoneFile(mac+`\.(?:cfg|xml)`, xmlDoc, fanvil)}},
		{id: "linphone", mainFile: "linphone.xml", agent: agentPattern("linphone"),
			aliases: []string{"belledonne", "belledonne communications"},
			files:   []fileKind{phoneFile(`linphone\.xml`, xmlDoc, linphone)}},
		{id: "acrobits", mainFile: "acrobits.xml", agent: agentPattern("acrobits|groundwire|cloudsoftphone|cloud softphone"),
			aliases: []string{"groundwire"},
			files:   []fileKind{phoneFile(`acrobits\.xml`, xmlDoc, acrobits)}},
		{id: "generic", mainFile: "phone.json", files: []fileKind{phoneFile(`phone\.json`, "application/json", genericJSON),
			phoneFile(`phone\.ini`, text, genericINI)}},
	}
}

func agentPattern(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + words) }

func fixedEvent(event string) func(bool) string { return func(bool) string { return event } }

// Catalog has all templates. It implements device.Templates.
type Catalog struct{}

// Templates returns the names of all templates.
func (Catalog) Templates() []string {
	var all []string
	for _, v := range templates() {
		all = append(all, v.id)
	}
	return all
}

// Template returns the template of a phone from its record: template if it is set, else by vendorName. It returns ""
// if there is none.
func (Catalog) Template(template, vendorName string) string {
	for _, v := range templates() {
		if v.matches(template) || template == "" && v.matches(vendorName) {
			return v.id
		}
	}
	return ""
}

func (v vendorTemplate) matches(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == v.id {
		return true
	}
	for _, n := range v.aliases {
		if n == name {
			return true
		}
	}
	return false
}

// Main returns the file name at the end of a template's address, or "" if phones append the file name themselves.
func (Catalog) Main(template string) string {
	for _, v := range templates() {
		if v.id == template {
			return v.mainFile
		}
	}
	return ""
}

// Event returns the event of the NOTIFY that makes a phone with the template fetch its configuration again.
func (Catalog) Event(template string, reboot bool) string {
	for _, v := range templates() {
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
type matchedFile struct {
	template string
	mac      string // MAC address in the name: twelve lower-case hexadecimal digits, or ""
	kind     fileKind
}

// findFile returns the file that a phone requests. Without a template it is chosen by the User-Agent and the file
// name.
func findFile(template, userAgent, name string) (matchedFile, bool) {
	for _, v := range candidates(template, userAgent) {
		file := name
		if file == "" {
			file = v.mainFile
		}
		for _, k := range v.files {
			if m := k.name.FindStringSubmatch(file); m != nil {
				w := matchedFile{template: v.id, kind: k}
				if len(m) > 1 {
					w.mac = strings.ToLower(m[1])
				}
				return w, true
			}
		}
	}
	return matchedFile{}, false
}

// candidates lists the possible templates, the most likely first.
func candidates(template, userAgent string) []vendorTemplate {
	var likely, rest []vendorTemplate
	for _, v := range templates() {
		switch {
		case v.id == template:
			return []vendorTemplate{v}
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
	w, ok := findFile(template, "", name)
	if !ok {
		return f, false
	}
	return w.render(name, p), true
}

func (w matchedFile) render(name string, p Phone) File {
	return File{Name: name, Type: w.kind.media, Body: w.kind.write(p.sanitized())}
}

// isKnownAgent reports whether a User-Agent is that of a template's phones.
func isKnownAgent(userAgent string) bool {
	for _, v := range templates() {
		if v.agent != nil && v.agent.MatchString(userAgent) {
			return true
		}
	}
	return false
}
