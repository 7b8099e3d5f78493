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
	w       http.ResponseWriter
	r       *http.Request
	address device.ProvisioningAddress
	token   string
	agent   string
	file    string
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, a device.ProvisioningAddress, token string) {
	if _, ok := s.limiter.Take(a.Device.ID, 1, fetchPolicy); !ok {
		tooManyRequests(w)
		return
	}
	q := &request{s, w, r, a, token, singleLine(truncate(r.UserAgent(), 200)), r.PathValue("file")}
	if q.file == "qr.png" || q.file == "qr.svg" {
		q.serveQRCode()
		return
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" || linkPreviewAgents.MatchString(q.agent) && !isKnownAgent(q.agent) {
		q.servePage()
		return
	}
	if found, ok := q.matchFile(); ok {
		q.serveFile(found)
		return
	}
	notFound(w)
}

func truncate(text string, most int) string {
	if len(text) > most {
		return text[:most]
	}
	return text
}

// matchFile returns the requested file.
func (q *request) matchFile() (matchedFile, bool) {
	template := q.cfg.Devices.Template(q.address.Device)
	if q.file == "" && template == "" && !isKnownAgent(q.agent) {
		return matchedFile{}, false
	}
	return findFile(template, q.agent, q.file)
}

// serveFile sends a file after the checks for its kind: none for files without secrets; otherwise the MAC address,
// then the open address or the login.
func (q *request) serveFile(f matchedFile) {
	switch {
	case q.r.Method == http.MethodHead:
		q.w.Header().Set("Content-Type", f.kind.media)
	case f.kind.common:
		q.serveCommon(f)
	case q.isForeign(f):
		q.recordRefusal(f, "not_found")
		notFound(q.w)
	case !q.isOpen() && !q.authenticate(f):
	default:
		q.serveOwn(f)
	}
}

// isForeign reports whether the file name has the MAC address of another phone.
func (q *request) isForeign(f matchedFile) bool {
	known := q.address.Device.MAC
	return f.mac != "" && known != nil && *known != colonMAC(f.mac)
}

// isOpen reports whether the request needs no login: until OpenUntil, if no phone has fetched yet or the User-Agent
// is that of the same product.
func (q *request) isOpen() bool {
	if !q.cfg.Clock.Now().Before(q.address.OpenUntil.Time) {
		return false
	}
	return q.address.BoundAt.IsZero() || agentProduct(q.agent) == agentProduct(q.address.UserAgent)
}

// agentProduct returns the first word of a User-Agent, which stays the same when the version changes.
func agentProduct(agent string) string {
	end := strings.IndexAny(agent, " /")
	if end < 0 {
		end = len(agent)
	}
	return strings.ToLower(agent[:end])
}

// authenticate checks the login. If it is not correct, it sends the response and returns false.
func (q *request) authenticate(f matchedFile) bool {
	if standing, ok := q.limiter.Take(q.address.Device.ID, 0, loginPolicy); !ok || standing[0].Left == 0 {
		tooManyRequests(q.w)
		return false
	}
	v := q.auth.check(q.r, q.address.Device.SIP.Username, q.address.Login)
	if v == authOK && q.address.Login != "" {
		return true
	}
	if v == authWrong {
		q.limiter.Take(q.address.Device.ID, 1, loginPolicy)
		q.recordRefusal(f, "unauthenticated")
	}
	q.auth.challenge(q.w.Header(), v)
	writeText(q.w, http.StatusUnauthorized, "This address needs the login that the phone was given with its configuration.")
	return false
}

func (q *request) fetchOf(f matchedFile, code string) device.Fetch {
	return device.Fetch{UserAgent: q.agent, MAC: colonMAC(f.mac), File: q.file, Code: code}
}

func (q *request) recordRefusal(f matchedFile, code string) {
	if err := q.cfg.Devices.RecordRefusal(q.r.Context(), q.address, q.fetchOf(f, code)); err != nil {
		q.cfg.Log.Error("refused fetch not stored", "device", q.address.Device.ID, "err", err)
	}
}

func (q *request) serveCommon(f matchedFile) {
	if err := q.cfg.Devices.RecordPublicFetch(q.r.Context(), q.address, q.fetchOf(f, "")); err != nil {
		q.fail(err)
		return
	}
	q.send(f)
}

func (q *request) serveOwn(f matchedFile) {
	a, err := q.cfg.Devices.RecordFetch(q.r.Context(), q.address, q.fetchOf(f, ""))
	if err != nil {
		q.fail(err)
		return
	}
	q.address = a
	q.send(f)
}

func (q *request) fail(err error) {
	q.cfg.Log.Error("configuration not sent", "device", q.address.Device.ID, "err", err)
	writeText(q.w, http.StatusInternalServerError, "Something went wrong.")
}

func (q *request) send(f matchedFile) {
	p, err := q.phoneOf(f)
	if err != nil {
		q.fail(err)
		return
	}
	q.w.Header().Set("Content-Type", f.kind.media)
	_, _ = q.w.Write(f.render(q.file, p).Body)
}

// phoneOf returns the data of the file.
func (q *request) phoneOf(f matchedFile) (Phone, error) {
	d, u := q.address.Device, q.address.User
	p := Phone{Label: d.Name, Name: u.Name, Username: d.SIP.Username, Realm: q.cfg.Realm, Transport: d.SIP.Transport, SRTP: d.SRTP,
		Codecs: d.Codecs, MAC: f.mac, Interval: q.cfg.Interval, NTP: q.cfg.NTP, Now: q.cfg.Clock.Now()}
	if u.Extension != nil {
		p.Extension = *u.Extension
	}
	if p.MAC == "" && d.MAC != nil {
		p.MAC = strings.ReplaceAll(*d.MAC, ":", "")
	}
	p.Server, p.Port = q.cfg.Registrar.RegistrarAddress(d.SIP.Transport)
	if !f.kind.common { // a file for all phones must not contain secrets of one phone
		p.Password, p.HTTPUser, p.HTTPPass, p.Keys = q.address.Password, d.SIP.Username, q.address.Login, d.LineKeys
		p.URL = q.cfg.Devices.FolderURL(q.token)
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
	return q.cfg.Zones.Zone(q.r.Context(), org)
}

// colonMAC returns a MAC address in the form of the records: with colons.
func colonMAC(mac string) string {
	var parts []string
	for i := 0; i+2 <= len(mac); i += 2 {
		parts = append(parts, mac[i:i+2])
	}
	return strings.Join(parts, ":")
}
