package provisioning

import (
	"net/http"
	"strings"
	"time"

	"soniq/internal/telephony/device"
)

// request is a request to an existing address.
type request struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	a     device.Address
	token string
	agent string
	file  string
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, a device.Address, token string) {
	if _, ok := s.limiter.Take(a.Device.ID, 1, fetches); !ok {
		tooMany(w)
		return
	}
	q := &request{s, w, r, a, token, plain(cut(r.UserAgent(), 200)), r.PathValue("file")}
	if q.file == "qr.png" || q.file == "qr.svg" {
		q.code()
		return
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" || looks.MatchString(q.agent) && !known(q.agent) {
		q.page()
		return
	}
	if found, ok := q.wanted(); ok {
		q.hand(found)
		return
	}
	nothing(w)
}

func cut(text string, most int) string {
	if len(text) > most {
		return text[:most]
	}
	return text
}

// matchFile returns the requested file.
func (q *request) wanted() (wanted, bool) {
	template := q.Devices.Template(q.a.Device)
	if q.file == "" && template == "" && !known(q.agent) {
		return wanted{}, false
	}
	return find(template, q.agent, q.file)
}

// serveFile sends a file after the checks for its kind: none for files without secrets; otherwise the MAC address,
// then the open address or the login.
func (q *request) hand(f wanted) {
	switch {
	case q.r.Method == http.MethodHead:
		q.w.Header().Set("Content-Type", f.kind.media)
	case f.kind.common:
		q.handCommon(f)
	case q.stranger(f):
		q.refuse(f, "not_found")
		nothing(q.w)
	case !q.open() && !q.admit(f):
	default:
		q.handOwn(f)
	}
}

// isForeign reports whether the file name has the MAC address of another phone.
func (q *request) stranger(f wanted) bool {
	known := q.a.Device.MAC
	return f.mac != "" && known != nil && *known != colons(f.mac)
}

// isOpen reports whether the request needs no login: until OpenUntil, if no phone has fetched yet or the User-Agent
// is that of the same product.
func (q *request) open() bool {
	if !q.Now().Before(q.a.OpenUntil.Time) {
		return false
	}
	return q.a.BoundAt.IsZero() || product(q.agent) == product(q.a.UserAgent)
}

// agentProduct returns the first word of a User-Agent, which stays the same when the version changes.
func product(agent string) string {
	end := strings.IndexAny(agent, " /")
	if end < 0 {
		end = len(agent)
	}
	return strings.ToLower(agent[:end])
}

// authenticate checks the login. If it is not correct, it sends the response and returns false.
func (q *request) admit(f wanted) bool {
	if standing, ok := q.limiter.Take(q.a.Device.ID, 0, logins); !ok || standing[0].Left == 0 {
		tooMany(q.w)
		return false
	}
	v := q.door.check(q.r, q.a.Device.SIP.Username, q.a.Login)
	if v == right && q.a.Login != "" {
		return true
	}
	if v == wrong {
		q.limiter.Take(q.a.Device.ID, 1, logins)
		q.refuse(f, "unauthenticated")
	}
	q.door.ask(q.w.Header(), v)
	say(q.w, http.StatusUnauthorized, "This address needs the login that the phone was given with its configuration.")
	return false
}

func (q *request) fetch(f wanted, code string) device.Fetch {
	return device.Fetch{UserAgent: q.agent, MAC: colons(f.mac), File: q.file, Code: code}
}

func (q *request) refuse(f wanted, code string) {
	if err := q.Devices.Refused(q.r.Context(), q.a, q.fetch(f, code)); err != nil {
		q.Log.Error("refused fetch not stored", "device", q.a.Device.ID, "err", err)
	}
}

func (q *request) handCommon(f wanted) {
	if err := q.Devices.Looked(q.r.Context(), q.a, q.fetch(f, "")); err != nil {
		q.fail(err)
		return
	}
	q.send(f)
}

func (q *request) handOwn(f wanted) {
	a, err := q.Devices.Fetched(q.r.Context(), q.a, q.fetch(f, ""))
	if err != nil {
		q.fail(err)
		return
	}
	q.a = a
	q.send(f)
}

func (q *request) fail(err error) {
	q.Log.Error("configuration not sent", "device", q.a.Device.ID, "err", err)
	say(q.w, http.StatusInternalServerError, "Something went wrong.")
}

func (q *request) send(f wanted) {
	p, err := q.phone(f)
	if err != nil {
		q.fail(err)
		return
	}
	q.w.Header().Set("Content-Type", f.kind.media)
	_, _ = q.w.Write(f.render(q.file, p).Body)
}

// phoneOf returns the data of the file.
func (q *request) phone(f wanted) (Phone, error) {
	d, u := q.a.Device, q.a.User
	p := Phone{Label: d.Name, Name: u.Name, Username: d.SIP.Username, Realm: q.Realm, Transport: d.SIP.Transport, SRTP: d.SRTP, Codecs: d.Codecs,
		MAC: f.mac, Interval: q.Interval, NTP: q.NTP, Now: q.Now()}
	if u.Extension != nil {
		p.Extension = *u.Extension
	}
	if p.MAC == "" && d.MAC != nil {
		p.MAC = strings.ReplaceAll(*d.MAC, ":", "")
	}
	p.Server, p.Port = q.Place(d.SIP.Transport)
	if !f.kind.common { // a file for all phones must not contain secrets of one phone
		p.Password, p.HTTPUser, p.HTTPPass, p.Keys = q.a.Password, d.SIP.Username, q.a.Login, d.LineKeys
		p.URL = q.Devices.FolderOf(q.token)
	}
	var err error
	p.Zone, err = q.zone(u.Timezone, d.OrgID)
	return p, err
}

// zone returns the time zone of the user, else that of the organisation.
func (q *request) zone(name *string, org string) (*time.Location, error) {
	if name != nil {
		if zone, err := time.LoadLocation(*name); err == nil {
			return zone, nil
		}
	}
	return q.Zone(q.r.Context(), org)
}

// colonMAC returns a MAC address in the form of the records: with colons.
func colons(mac string) string {
	var parts []string
	for i := 0; i+2 <= len(mac); i += 2 {
		parts = append(parts, mac[i:i+2])
	}
	return strings.Join(parts, ":")
}
